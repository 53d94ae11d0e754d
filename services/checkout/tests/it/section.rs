//! The statements of the critical section, and those of a driver, one by one.

use std::time::Duration;

use checkout::domain::purchase::{Order, Purchase, Terms, now};
use checkout::domain::saga::{Done, Outcome, Step};
use checkout::store::{Claim, Driving, Recorded, Store, Written};
use guard::WriteRule;
use service_kit::{CallContext, IdempotencyKey};
use testkit::{TestDb, for_each_engine};
use ticketing_types::{Currency, Money, Strategy};

use crate::shop;

/// A book whose claims run out at once.
pub(crate) async fn open(db: &TestDb) -> Store {
    let driving = Driving {
        claimed_by: "test".to_owned(),
        claim_ttl: Duration::ZERO,
        silence_max: Duration::from_secs(60),
    };
    Store::open(db.url(), driving).await.unwrap()
}

/// A purchase that has not begun.
pub(crate) fn purchase(buyer: &str, key: &str, strategy: Strategy) -> Purchase {
    let wish = serde_json::from_value(shop::order(buyer, 1)).unwrap();
    let order = Order::new(wish, &IdempotencyKey::parse(key).unwrap());
    Purchase::new(
        order,
        Terms::of(&CallContext::with_strategy(strategy), strategy),
        now(),
    )
}

fn claimed(written: Written) -> Claim {
    match written {
        Written::Claimed(claim) => claim,
        other => panic!("{other:?}"),
    }
}

async fn standing(store: &Store, purchase: &Purchase) -> Option<Purchase> {
    let order = &purchase.order;
    store.find(&order.buyer, &order.idempotency_key).await.unwrap()
}

for_each_engine! {
    async fn a_purchase_reads_back_as_it_was_written(db: TestDb) {
        let store = open(&db).await;
        let mut written = purchase("ann", "k", Strategy::Raft);
        written.terms.traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into());
        let claim = claimed(store.insert(&written, WriteRule::Fenced(7)).await.unwrap());
        assert_eq!(standing(&store, &written).await, Some(written.clone()));

        let amount = Money::new(1250, Currency::parse("EUR").unwrap()).unwrap();
        written.saga.record(Step::PlaceHold, Outcome::Done(Done::HoldPlaced { amount }));
        written.timings.lock_wait_ms = 0.125;
        let recorded = store.record(&claim, &written, None, now()).await.unwrap();
        assert_eq!(recorded, Recorded::Kept { cancel_requested: false });
        assert_eq!(store.get(&written.id).await.unwrap(), Some(written));
    }

    async fn a_stale_token_cannot_begin_a_purchase(db: TestDb) {
        let store = open(&db).await;
        let newer = purchase("ann", "k", Strategy::Raft);
        claimed(store.insert(&newer, WriteRule::Fenced(8)).await.unwrap());
        let older = purchase("ann", "k", Strategy::Raft);
        assert!(matches!(store.insert(&older, WriteRule::Fenced(7)).await.unwrap(), Written::Stale));
        store.note_stale_write(&older, 7).await.unwrap();
        let event_id = older.order.items.lines()[0].event_id.clone();
        let records = store.records(&event_id).await.unwrap();
        assert_eq!((records.purchases.len(), records.stale_tokens_rejected), (1, 1));
        // Another key is another scope.
        let other = purchase("ann", "k2", Strategy::Raft);
        claimed(store.insert(&other, WriteRule::Fenced(7)).await.unwrap());
    }

    async fn the_index_is_the_last_line_of_defence_and_only_for_strategies_that_promise(db: TestDb) {
        let store = open(&db).await;
        for (key, strategy, rule, second_stands) in [
            ("raft", Strategy::Raft, WriteRule::Fenced(9), false),
            ("atomic", Strategy::Atomic, WriteRule::Conditional, false),
            ("optimistic", Strategy::Optimistic, WriteRule::CompareVersion, false),
            ("none", Strategy::None, WriteRule::Plain, true),
            ("process", Strategy::Process, WriteRule::Plain, true),
            ("raft-unfenced", Strategy::RaftUnfenced, WriteRule::Plain, true),
        ] {
            let first = purchase("ann", key, strategy);
            claimed(store.insert(&first, rule).await.unwrap());
            let second = store.insert(&purchase("ann", key, strategy), rule).await.unwrap();
            assert_eq!(matches!(second, Written::Claimed(_)), second_stands, "{key}: {second:?}");
            assert_eq!(standing(&store, &first).await.unwrap().id, first.id, "the first is the one that is found");
        }
    }

    async fn an_insert_whose_commit_went_unanswered_is_recognised_as_our_own(db: TestDb) {
        let store = open(&db).await;
        for (key, strategy, rule) in [
            ("none", Strategy::None, WriteRule::Plain),
            ("raft", Strategy::Raft, WriteRule::Fenced(3)),
            ("atomic", Strategy::Atomic, WriteRule::Conditional),
        ] {
            let ours = purchase("ann", key, strategy);
            claimed(store.insert(&ours, rule).await.unwrap());
            claimed(store.insert(&ours, rule).await.unwrap());
        }
    }

    async fn a_busy_purchase_starts_again_once(db: TestDb) {
        let store = open(&db).await;
        let mut ended = purchase("ann", "k", Strategy::Raft);
        let claim = claimed(store.insert(&ended, WriteRule::Fenced(5)).await.unwrap());
        ended.saga.record(Step::PlaceHold, Outcome::Busy);
        store.record(&claim, &ended, None, now()).await.unwrap();

        let again = purchase("ann", "k", Strategy::Raft);
        let stale = store.start_again(&ended.id, &again, WriteRule::Fenced(4)).await.unwrap();
        assert!(matches!(stale, Written::Beaten), "{stale:?}");
        let second = claimed(store.start_again(&ended.id, &again, WriteRule::Fenced(6)).await.unwrap());
        assert_eq!(second.id, ended.id);
        let third = store.start_again(&ended.id, &again, WriteRule::Fenced(7)).await.unwrap();
        assert!(matches!(third, Written::Beaten), "{third:?}");
        assert_eq!(store.record(&claim, &ended, None, now()).await.unwrap(), Recorded::Overtaken);
    }

    async fn a_driver_that_was_overtaken_writes_nothing(db: TestDb) {
        let store = open(&db).await;
        let mut slow = purchase("ann", "k", Strategy::Atomic);
        let first = claimed(store.insert(&slow, WriteRule::Conditional).await.unwrap());
        let (second, found) = store.claim(&slow.id).await.unwrap().expect("its claim has run out");
        assert!(second.claim_no > first.claim_no);
        slow.saga.record(Step::PlaceHold, Outcome::Busy);
        assert_eq!(store.record(&first, &slow, None, now()).await.unwrap(), Recorded::Overtaken);
        let standing = store.get(&slow.id).await.unwrap().unwrap();
        assert_eq!(standing.saga.resume(), found.saga);
    }

    async fn a_claim_that_is_renewed_cannot_be_taken(db: TestDb) {
        let mut driving = Driving {
            claimed_by: "alive".to_owned(),
            claim_ttl: Duration::from_secs(60),
            silence_max: Duration::from_secs(60),
        };
        let alive = Store::open(db.url(), driving.clone()).await.unwrap();
        let other = open(&db).await;
        let held = purchase("ann", "k", Strategy::Atomic);
        let claim = claimed(other.insert(&held, WriteRule::Conditional).await.unwrap());
        assert_eq!(other.stale(10).await.unwrap(), vec![held.id.clone()]);
        let (taken, _) = alive.claim(&held.id).await.unwrap().unwrap();
        assert_eq!((other.stale(10).await.unwrap(), alive.renew().await.unwrap()), (vec![], 1));
        assert!(other.claim(&held.id).await.unwrap().is_none());
        other.give_up(&claim).await; // not theirs any more
        assert!(other.claim(&held.id).await.unwrap().is_none());

        // A driver that has not written for too long is not believed to be alive.
        driving.silence_max = Duration::ZERO;
        let impatient = Store::open(db.url(), driving).await.unwrap();
        testkit::eventually(shop::SOON, "silence", async || (impatient.renew().await.unwrap() == 0).then_some(()))
            .await;
        assert_eq!(taken.id, held.id);
    }
}
