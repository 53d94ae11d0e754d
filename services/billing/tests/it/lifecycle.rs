//! One payment, one caller: what each call means in each status.

use serde_json::json;
use testkit::TestDb;

use crate::support::{Ask, ONCE, Totals, World, eur};

testkit::for_each_engine! {
    async fn a_payment_goes_from_authorized_to_captured_and_tells_where_the_time_went(db: TestDb) {
        let world = World::start(&db).await;
        let call = |call: reqwest::RequestBuilder| call.header("lock-strategy", "atomic");
        assert_eq!(world.get("p-1").await.problem(), (404, "payment-not-found"));
        let authorized = call(world.put("p-1", "card_ok")).answer().await;
        assert_eq!(authorized.status, 201);
        assert_eq!(authorized.body["amount"], eur(500));
        assert_eq!(authorized.body["buyer"], "alice");
        assert!(authorized.body["timings"]["section_ms"].as_f64().expect("a number") > 0.0);
        assert_eq!(world.get("p-1").await.payment_status(), "authorized");
        assert_eq!(call(world.capture("p-1")).answer().await.payment_status(), "captured");
        assert_eq!(world.get("p-1").await.payment_status(), "captured");
        assert_eq!(call(world.put("p-1", "card_ok")).answer().await.payment_status(), "captured");
        assert_eq!(world.ledger("p-1").await, ONCE);
        world.stop().await;
    }

    async fn the_same_id_with_another_body_is_a_mismatch(db: TestDb) {
        let world = World::start(&db).await;
        let call = |call: reqwest::RequestBuilder| call.header("lock-strategy", "atomic");
        assert_eq!(call(world.put("p-1", "card_ok")).answer().await.status, 201);
        let other = [
            json!({"buyer": "bob", "amount": eur(500), "card": "card_ok"}),
            json!({"buyer": "alice", "amount": eur(501), "card": "card_ok"}),
            json!({"buyer": "alice", "amount": {"amount_minor": 500, "currency": "USD"}, "card": "card_ok"}),
            json!({"buyer": "alice", "amount": eur(500), "card": "card_slow"}),
        ];
        for body in other {
            let answer = call(world.put("p-1", "card_ok")).json(&body).answer().await;
            assert_eq!(answer.problem(), (422, "payment-mismatch"), "{body}");
        }
        assert_eq!(world.ledger("p-1").await.authorizations, 1);
        world.stop().await;
    }

    async fn a_void_gives_the_money_back_and_closes_the_payment(db: TestDb) {
        let world = World::start(&db).await;
        let call = |call: reqwest::RequestBuilder| call.header("lock-strategy", "atomic");
        assert_eq!(call(world.put("p-1", "card_ok")).answer().await.status, 201);
        for _ in 0..2 {
            let voided = call(world.void("p-1")).answer().await;
            assert_eq!((voided.status.as_u16(), voided.payment_status()), (200, "voided"));
        }
        assert_eq!(call(world.put("p-1", "card_ok")).answer().await.problem(), (409, "payment-voided"));
        assert_eq!(call(world.capture("p-1")).answer().await.problem(), (409, "payment-voided"));
        assert_eq!(world.ledger("p-1").await.captures, 0);
        world.stop().await;
    }

    async fn a_void_before_the_payment_closes_its_id(db: TestDb) {
        let world = World::start(&db).await;
        for strategy in ["none", "process", "optimistic", "atomic"] {
            let id = format!("p-{strategy}");
            let call = |call: reqwest::RequestBuilder| call.header("lock-strategy", strategy);
            assert_eq!(call(world.void(&id)).answer().await.payment_status(), "voided");
            assert_eq!(call(world.put(&id, "card_ok")).answer().await.problem(), (409, "payment-voided"));
            assert_eq!(call(world.void(&id)).answer().await.status, 200);
            assert_eq!(world.ledger(&id).await, Totals::default());
            let view = world.get(&id).await;
            assert!(view.body.get("buyer").is_none(), "{view:?}");
        }
        world.stop().await;
    }

    async fn captured_money_is_refunded_not_voided(db: TestDb) {
        let world = World::start(&db).await;
        world.captured("p-1").await;
        let voided = world.void("p-1").header("lock-strategy", "atomic").answer().await;
        assert_eq!(voided.problem(), (409, "payment-captured"));
        assert_eq!(world.capture("p-2").header("lock-strategy", "atomic").answer().await.problem().0, 404);
        world.stop().await;
    }

    async fn the_audit_reads_every_row_and_leaves_out_what_it_never_heard_of(db: TestDb) {
        let world = World::start(&db).await;
        world.captured("p-1").await;
        world.refund("p-1", "r-1", 200).answer().await;
        let call = world.call(reqwest::Method::POST, "/v1/audit-records");
        let records = call.json(&json!({"payment_ids": ["p-1", "p-2"]})).answer().await;
        let expected = json!({
            "payments": [{"id": "p-1", "status": "captured", "captured_minor": 500, "refunded_minor": 200}],
            "stale_tokens_rejected": 0,
        });
        assert_eq!(records.body, expected);
        world.stop().await;
    }
}
