//! Each test card, as a merchant sees it.

use std::time::{Duration, Instant};

use testkit::TestDb;

use crate::support::{Gateway, LATE, authorization, capture};

testkit::for_each_engine! {
    async fn card_ok_pays(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let authorized = gateway.authorize("k-1", "p-1", "card_ok").await;
        assert_eq!(authorized.status, 201);
        assert_eq!(gateway.capture("k-2", "p-1", authorized.id()).await.status, 201);
        assert_eq!(gateway.totals("p-1").await, Some((1, 1, 500, 0)));
        gateway.stop().await;
    }

    async fn card_declined_is_declined_again_with_the_same_key_and_with_another(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        for key in ["k-1", "k-1", "k-2"] {
            let declined = gateway.authorize(key, "p-1", "card_declined").await;
            assert_eq!(declined.problem(), (402, "card-declined"));
        }
        assert_eq!(gateway.totals("p-1").await, Some((0, 0, 0, 0)));
        gateway.stop().await;
    }

    async fn card_lost_reply_charges_and_drops_the_connection_once_per_step(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let call = authorization("k-1", "p-1", "card_lost_reply");
        let lost = gateway.post("/v1/authorizations", call.clone()).await;
        assert!(lost.is_err(), "no answer, not even a status: {lost:?}");
        assert_eq!(gateway.totals("p-1").await, Some((1, 0, 0, 0)), "but charged");
        let authorized = gateway.answer("/v1/authorizations", call).await;
        assert_eq!(authorized.status, 200);
        assert_eq!(authorized.headers["idempotent-replayed"], "true");

        let call = capture("k-2", "p-1", authorized.id());
        assert!(gateway.post("/v1/captures", call.clone()).await.is_err());
        assert_eq!(gateway.totals("p-1").await, Some((1, 1, 500, 0)));
        assert_eq!(gateway.answer("/v1/captures", call).await.status, 200);
        assert_eq!(gateway.totals("p-1").await, Some((1, 1, 500, 0)));
        gateway.stop().await;
    }

    async fn card_lost_reply_with_a_new_key_takes_the_money_twice(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let lost = gateway.post("/v1/authorizations", authorization("k-1", "p-1", "card_lost_reply")).await;
        assert!(lost.is_err());
        let authorized = gateway.authorize("k-2", "p-1", "card_lost_reply").await;
        assert_eq!(authorized.status, 201, "to the processor this is a new wish");
        assert!(gateway.post("/v1/captures", capture("k-3", "p-1", authorized.id())).await.is_err());
        assert_eq!(gateway.capture("k-4", "p-1", authorized.id()).await.status, 201);
        assert_eq!(gateway.totals("p-1").await, Some((2, 2, 1000, 0)));
        gateway.stop().await;
    }

    async fn card_slow_is_late_once_and_has_charged_long_before_it_answers(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let call = authorization("k-1", "p-1", "card_slow");
        let asked = Instant::now();
        let first = gateway.answer("/v1/authorizations", call.clone());
        let second = async {
            let charged = async || gateway.totals("p-1").await.map(drop);
            testkit::eventually(Duration::from_secs(5), "the charge", charged).await;
            let again = gateway.answer("/v1/authorizations", call.clone()).await;
            (again, asked.elapsed())
        };
        let (first, (again, after)) = futures::join!(first, second);
        assert!(asked.elapsed() >= LATE);
        assert!(after < LATE, "asking again does not wait: {after:?}");
        assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
        assert_eq!(first.id(), again.id());
        gateway.stop().await;
    }

    async fn card_flaky_fails_before_charging_once_per_reference_also_across_a_restart(db: TestDb) {
        let gateway = Gateway::start(&db).await;
        let failed = gateway.authorize("k-1", "p-1", "card_flaky").await;
        assert_eq!(failed.problem(), (503, "processor-unavailable"));
        assert!(failed.headers.contains_key("retry-after"));
        assert_eq!(gateway.totals("p-1").await, None, "nothing was charged");
        gateway.stop().await;

        let gateway = Gateway::start(&db).await;
        assert_eq!(gateway.authorize("k-1", "p-1", "card_flaky").await.status, 201);
        assert_eq!(gateway.authorize("k-2", "p-2", "card_flaky").await.status, 503);
        gateway.stop().await;
    }
}
