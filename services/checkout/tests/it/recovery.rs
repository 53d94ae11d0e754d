//! Purchases whose driver is gone are finished by the worker, wherever their driver stood.

use std::time::Duration;

use checkout::domain::purchase::{Purchase, now};
use checkout::domain::steps::Steps;
use checkout::store::{Store, Written};
use checkout::{Parts, assemble};
use guard::WriteRule;
use service_kit::{CallContext, Peer, http_client};
use testkit::{TestDb, for_each_engine};
use ticketing_types::checkout::PurchaseStatus;
use ticketing_types::{HoldTtlMs, Strategy};
use tokio_util::sync::CancellationToken;

use crate::section::{open, purchase};
use crate::shop::{SOON, config};
use crate::world::{Call, Trouble, World};

async fn parts(db: &TestDb, world: &World, instance: &str) -> Parts {
    let mut config = config(db, world);
    config.instance = instance.to_owned();
    config.lock_wait = Duration::ZERO;
    config.budget = Duration::from_millis(200);
    config.recovery_stale = Duration::from_millis(1000);
    assemble(&config, &CancellationToken::new()).await.unwrap()
}

fn steps(world: &World) -> Steps {
    let (http, urls) = (http_client(), [world.url.clone()]);
    let peer = |name| Peer::new(&http, name, &urls, Duration::from_secs(5)).unwrap();
    Steps {
        inventory: peer("inventory"),
        billing: peer("billing"),
        hold_ttl: HoldTtlMs::try_from(60_000).unwrap(),
        lock_call_timeout: Duration::from_secs(5),
    }
}

/// A driver that takes and records this many steps, perhaps takes one more, and is never heard of again.
async fn abandon(store: &Store, world: &World, key: &str, recorded: usize, one_more: bool) -> Purchase {
    let mut purchase = purchase("ann", key, Strategy::Optimistic);
    purchase.terms.traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into());
    let (steps, context) = (steps(world), purchase.terms.onto(CallContext::default()));
    let Written::Claimed(claim) = store.insert(&purchase, WriteRule::CompareVersion).await.unwrap() else {
        panic!("the key is free");
    };
    for _ in 0..recorded {
        let step = purchase.saga.next().unwrap();
        let taken = steps.take(step, &purchase, &context).await;
        purchase.saga.record(step, taken.outcome);
        store.record(&claim, &purchase, None, now()).await.unwrap();
    }
    if one_more {
        steps
            .take(purchase.saga.next().unwrap(), &purchase, &context)
            .await;
    }
    purchase
}

async fn status(store: &Store, purchase: &Purchase) -> PurchaseStatus {
    store.get(&purchase.id).await.unwrap().unwrap().saga.status()
}

for_each_engine! {
    async fn a_purchase_abandoned_anywhere_is_finished_as_it_was_begun(db: TestDb) {
        for recorded in 0..4 {
            for one_more in [false, true] {
                let world = World::with_stock(5).await;
                let store = open(&db).await;
                let key = format!("k-{recorded}-{one_more}");
                let abandoned = abandon(&store, &world, &key, recorded, one_more).await;
                let mut parts = parts(&db, &world, "checkout-1").await;
                testkit::eventually(SOON, "something to recover", async || {
                    (parts.recovery.run_once().await.unwrap() == 1).then_some(())
                })
                .await;
                assert_eq!(status(&store, &abandoned).await, PurchaseStatus::Completed, "{key}");
                assert_eq!((world.sold(), world.captures()), (1, 1), "{key}");
                assert!(store.answer(&abandoned.id).await.unwrap().is_some());
                for seen in world.seen() {
                    assert_eq!((seen.strategy.as_str(), seen.payment_key.as_str()), ("optimistic", "stable"));
                    assert_eq!(Some(seen.traceparent), abandoned.terms.traceparent);
                }
                assert_eq!(parts.recovery.run_once().await.unwrap(), 0);
                world.assert_at_rest();
            }
        }
    }

    async fn two_workers_share_the_work_and_do_none_of_it_twice(db: TestDb) {
        let world = World::with_stock(100).await;
        let store = open(&db).await;
        let mut abandoned = Vec::new();
        for n in 0..20 {
            abandoned.push(abandon(&store, &world, &format!("k-{n}"), n % 4, false).await);
        }
        let calls = world.seen().len();
        let mut one = parts(&db, &world, "checkout-1").await;
        let mut two = parts(&db, &world, "checkout-2").await;
        let finished = testkit::eventually(SOON, "something to recover", async || {
            let (one, two) = tokio::join!(one.recovery.run_once(), two.recovery.run_once());
            let finished = one.unwrap() + two.unwrap();
            (finished > 0).then_some(finished)
        })
        .await;
        assert_eq!(finished, 20);
        for purchase in &abandoned {
            assert_eq!(status(&store, purchase).await, PurchaseStatus::Completed);
        }
        let left = 5 * (4 + 3 + 2 + 1);
        assert_eq!((world.captures(), world.sold(), world.seen().len() - calls), (20, 20, left));
    }

    async fn a_worker_that_runs_out_of_time_lets_another_go_on(db: TestDb) {
        let world = World::with_stock(5).await;
        let store = open(&db).await;
        let abandoned = abandon(&store, &world, "k", 1, false).await;
        for _ in 0..40 {
            world.next(Call::Authorize, Trouble::Busy);
        }
        let mut parts = parts(&db, &world, "checkout-1").await;
        testkit::eventually(SOON, "the end", async || {
            parts.recovery.run_once().await.unwrap();
            (status(&store, &abandoned).await == PurchaseStatus::Completed).then_some(())
        })
        .await;
        assert_eq!(world.captures(), 1);
    }

    async fn a_purchase_called_off_while_nobody_drove_it_is_undone(db: TestDb) {
        let world = World::with_stock(5).await;
        let store = open(&db).await;
        let abandoned = abandon(&store, &world, "k", 1, true).await;
        store.call_off(&abandoned.id).await.unwrap().expect("nobody drives it");
        let mut parts = parts(&db, &world, "checkout-1").await;
        testkit::eventually(SOON, "something to recover", async || {
            (parts.recovery.run_once().await.unwrap() == 1).then_some(())
        })
        .await;
        assert_eq!(status(&store, &abandoned).await, PurchaseStatus::Rejected);
        assert_eq!((world.sold(), world.captures()), (0, 0));
        world.assert_at_rest();
    }
}
