//! The ledger's own rules: keys, voids, refunds, what can be looked up.

use futures::future::join_all;
use serde_json::json;
use testkit::TestDb;

use crate::support::{Answer, Gateway, authorization, capture};

testkit::for_each_engine! {
    async fn the_same_key_sent_many_times_at_once_is_one_charge(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let calls = (0..20).map(|_| gateway.authorize("k-1", "p-1", "card_ok"));
        let answers = join_all(calls).await;
        let created = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(created, 1);
        assert!(answers.iter().all(|answer| answer.id() == answers[0].id()));
        assert_eq!(gateway.totals("p-1").await, Some((1, 0, 0, 0)));

        let id = answers[0].id();
        let captures = join_all((0..20).map(|_| gateway.capture("k-2", "p-1", id))).await;
        assert!(captures.iter().all(|answer| answer.status.is_success()));
        assert_eq!(gateway.totals("p-1").await, Some((1, 1, 500, 0)));
        gateway.stop().await;
    }

    async fn a_key_with_another_body_is_refused_also_for_another_reference(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let id = gateway.authorize("k-1", "p-1", "card_ok").await.id().to_owned();
        let other = [
            ("/v1/authorizations", authorization("k-1", "p-1", "card_slow")),
            ("/v1/authorizations", authorization("k-1", "p-2", "card_ok")),
            ("/v1/captures", capture("k-1", "p-1", &id)),
            ("/v1/voids", json!({"key": "k-1", "reference": "p-1"})),
        ];
        for (path, body) in other {
            assert_eq!(gateway.answer(path, body).await.problem(), (422, "key-reused"), "{path}");
        }
        assert_eq!(gateway.totals("p-1").await, Some((1, 0, 0, 0)));
        assert_eq!(gateway.totals("p-2").await, None);
        gateway.stop().await;
    }

    async fn a_void_refuses_what_comes_later_and_captured_money_is_not_voided(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let id = gateway.authorize("k-1", "p-1", "card_ok").await.id().to_owned();
        assert_eq!(gateway.void("v-1", "p-1").await.status, 201);
        assert_eq!(gateway.void("v-1", "p-1").await.status, 200);
        assert_eq!(gateway.capture("c-1", "p-1", &id).await.problem(), (409, "authorization-voided"));
        let late = gateway.authorize("k-2", "p-1", "card_ok").await;
        assert_eq!(late.problem(), (409, "reference-closed"));

        assert_eq!(gateway.void("v-2", "p-2").await.status, 201, "also when nothing is there yet");
        let late = gateway.authorize("k-3", "p-2", "card_ok").await;
        assert_eq!(late.problem(), (409, "reference-closed"));

        let id = gateway.authorize("k-4", "p-3", "card_ok").await.id().to_owned();
        assert_eq!(gateway.capture("c-3", "p-3", &id).await.status, 201);
        assert_eq!(gateway.void("v-3", "p-3").await.problem(), (409, "already-captured"));
        gateway.stop().await;
    }

    async fn a_void_and_an_authorization_at_once_leave_nothing_reserved(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        for round in 0..10 {
            let reference = format!("p-{round}");
            let key = format!("k-{round}");
            let void_key = format!("v-{round}");
            let (authorized, voided) = futures::join!(
                gateway.authorize(&key, &reference, "card_ok"),
                gateway.void(&void_key, &reference),
            );
            assert_eq!(voided.status, 201);
            if authorized.status == 201 {
                let captured = gateway.capture(&format!("c-{round}"), &reference, authorized.id()).await;
                assert_eq!(captured.problem(), (409, "authorization-voided"));
            } else {
                assert_eq!(authorized.problem(), (409, "reference-closed"));
            }
        }
        gateway.stop().await;
    }

    async fn refunds_at_once_never_exceed_what_was_captured(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let id = gateway.authorize("k-1", "p-1", "card_ok").await.id().to_owned();
        gateway.capture("k-2", "p-1", &id).await;
        let keys: Vec<_> = (0..12).map(|n| format!("r-{n}")).collect();
        let answers: Vec<Answer> = join_all(keys.iter().map(|key| gateway.refund(key, "p-1", 100))).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 5);
        assert_eq!(answers.iter().filter(|answer| answer.problem() == (422, "over-refund")).count(), 7);
        assert_eq!(gateway.totals("p-1").await, Some((1, 1, 500, 500)));
        gateway.stop().await;
    }

    async fn the_book_shows_every_line_in_order(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let id = gateway.authorize("k-1", "p-1", "card_ok").await.id().to_owned();
        gateway.capture("k-2", "p-1", &id).await;
        gateway.refund("k-3", "p-1", 200).await;
        let url = format!("{}/v1/ledger/p-1", gateway.url);
        let lines = Answer::read(gateway.http.get(url).send().await.expect("an answer")).await.body;
        let lines: Vec<_> = lines.as_array().expect("a list").iter().collect();
        let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
        assert_eq!(kinds, ["authorize", "capture", "refund"]);
        assert_eq!(lines[2]["amount"], json!({"amount_minor": 200, "currency": "EUR"}));

        let found = gateway.answer("/v1/ledger/lookup", json!({"references": ["p-0", "p-1", "p-9"]})).await;
        assert_eq!(found.body["totals"].as_array().map(Vec::len), Some(1), "the unknown are left out");
        gateway.stop().await;
    }

    async fn a_fault_after_the_charge_loses_the_answer_and_not_the_charge(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let call = authorization("k-1", "p-1", "card_ok");
        let send = |fault: &'static str| {
            gateway.http
                .post(format!("{}/v1/authorizations", gateway.url))
                .header("fault", fault)
                .json(&call)
                .send()
        };
        let refused = send("gateway.before-charge=error=503").await.expect("an answer");
        assert_eq!(refused.status(), 503);
        assert_eq!(gateway.totals("p-1").await, None);
        assert!(send("gateway.after-charge=drop-reply").await.is_err());
        assert_eq!(gateway.totals("p-1").await, Some((1, 0, 0, 0)));
        gateway.stop().await;
    }
}
