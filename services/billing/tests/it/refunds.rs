//! Giving money back: never more than was taken, and each refund once.

use futures::future::join_all;
use serde_json::json;
use testkit::TestDb;

use crate::support::{Ask, World};

testkit::for_each_engine! {
    async fn a_refund_is_done_once_however_often_it_is_asked_for(db: TestDb) {
        let world = World::start(&db).await;
        world.captured("p-1").await;
        let answers = join_all((0..10).map(|_| world.refund("p-1", "r-1", 200).final_answer())).await;
        for answer in &answers {
            assert!(answer.status.is_success(), "{answer:?}");
            assert_eq!(answer.body, answers[0].body, "everybody gets the same answer");
        }
        assert_eq!(answers[0].body["refundable_minor"], 300);
        world.refund("p-1", "r-2", 100).answer().await;
        let again = world.refund("p-1", "r-1", 200).answer().await;
        assert_eq!((again.status.as_u16(), &again.body), (200, &answers[0].body), "also later");
        assert_eq!(world.ledger("p-1").await.refunded_minor, 300);
        assert_eq!(world.get("p-1").await.body["refunded_minor"], 300);
        world.stop().await;
    }

    async fn refunds_at_once_never_exceed_what_was_captured(db: TestDb) {
        let world = World::start(&db).await;
        world.captured("p-1").await;
        let ids: Vec<_> = (0..16).map(|n| format!("r-{n}")).collect();
        let answers = join_all(ids.iter().map(|id| world.refund("p-1", id, 100).final_answer())).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 5, "{answers:?}");
        let refused = answers.iter().filter(|answer| answer.problem() == (422, "over-refund")).count();
        assert_eq!(refused, 11);
        assert_eq!(world.ledger("p-1").await.refunded_minor, 500);
        world.stop().await;
    }

    async fn a_refund_that_cannot_be_says_why(db: TestDb) {
        let world = World::start(&db).await;
        world.captured("p-1").await;
        let over = world.refund("p-1", "r-1", 501).answer().await;
        assert_eq!(over.problem(), (422, "over-refund"));
        assert_eq!(over.body["refundable"], 500);
        assert_eq!(world.refund("p-1", "r-1", i64::MAX).answer().await.problem(), (422, "over-refund"));
        assert_eq!(world.refund("p-1", "r-1", 200).answer().await.status, 201, "the id is not used up");
        assert_eq!(world.refund("p-1", "r-1", 100).answer().await.problem(), (422, "refund-mismatch"));
        let over = world.refund("p-1", "r-2", 301).answer().await;
        assert_eq!(over.body["refundable"], 300);
        let dollars = json!({"id": "r-3", "amount": {"amount_minor": 1, "currency": "USD"}});
        let answer = world.refund("p-1", "r-3", 1).json(&dollars).answer().await;
        assert_eq!(answer.problem(), (422, "currency-mismatch"));
        assert_eq!(world.refund("p-9", "r-1", 1).answer().await.problem(), (404, "payment-not-found"));

        let authorized = world.put("p-2", "card_ok").header("lock-strategy", "atomic").answer().await;
        assert_eq!(authorized.status, 201);
        let early = world.refund("p-2", "r-1", 1).answer().await;
        assert_eq!((early.problem(), &early.body["refundable"]), ((422, "over-refund"), &json!(0)));
        assert_eq!(world.ledger("p-1").await.refunded_minor, 200);
        world.stop().await;
    }
}
