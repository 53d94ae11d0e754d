//! Every card under every strategy that needs no cluster, and the two ways to make keys.

use testkit::TestDb;

use crate::support::{Ask, ONCE, Totals, World};

const STRATEGIES: [&str; 4] = ["none", "process", "optimistic", "atomic"];

testkit::for_each_engine! {
    async fn every_card_that_pays_is_charged_once_with_stable_keys(db: TestDb) {
        let world = World::start(&db).await;
        for strategy in STRATEGIES {
            for card in ["card_ok", "card_slow", "card_lost_reply", "card_flaky"] {
                let id = format!("{strategy}-{}", card.replace('_', "-"));
                let headers = |call: reqwest::RequestBuilder| {
                    call.header("lock-strategy", strategy).header("payment-key", "stable")
                };
                let authorized = headers(world.put(&id, card)).answer().await;
                assert_eq!(authorized.status, 201, "{id}: {authorized:?}");
                assert_eq!(authorized.payment_status(), "authorized");
                let again = headers(world.put(&id, card)).answer().await;
                assert_eq!(again.status, 200, "{id}: {again:?}");
                for _ in 0..2 {
                    let captured = headers(world.capture(&id)).answer().await;
                    assert_eq!(captured.status, 200, "{id}: {captured:?}");
                    assert_eq!(captured.payment_status(), "captured");
                }
                assert_eq!(world.ledger(&id).await, ONCE, "{id}");
            }
        }
        world.stop().await;
    }

    async fn a_decline_is_an_answer_and_is_replayed(db: TestDb) {
        let world = World::start(&db).await;
        for strategy in STRATEGIES {
            let id = format!("{strategy}-declined");
            for _ in 0..2 {
                let declined = world.put(&id, "card_declined").header("lock-strategy", strategy).answer().await;
                assert_eq!(declined.problem(), (402, "payment-declined"), "{strategy}");
            }
            let captured = world.capture(&id).header("lock-strategy", strategy).answer().await;
            assert_eq!(captured.problem(), (402, "payment-declined"));
            assert_eq!(world.get(&id).await.payment_status(), "declined");
            assert_eq!(world.ledger(&id).await, Totals::default());
        }
        world.stop().await;
    }

    async fn a_lost_reply_with_fresh_keys_charges_twice_whatever_the_guard(db: TestDb) {
        let world = World::start(&db).await;
        // `none` makes fresh keys unasked; the others when they are told to. No lock helps against that.
        for (strategy, header) in [("none", None), ("atomic", Some("fresh")), ("optimistic", Some("fresh"))] {
            let id = format!("{strategy}-fresh");
            let headers = |call: reqwest::RequestBuilder| {
                let call = call.header("lock-strategy", strategy);
                header.map_or(call.try_clone().expect("no stream"), |key| call.header("payment-key", key))
            };
            assert_eq!(headers(world.put(&id, "card_lost_reply")).answer().await.status, 201);
            assert_eq!(headers(world.capture(&id)).answer().await.status, 200);
            let twice = Totals { authorizations: 2, captures: 2, captured_minor: 1000, refunded_minor: 0 };
            assert_eq!(world.ledger(&id).await, twice, "{strategy}");
        }
        world.stop().await;
    }
}
