//! The same key again: while the first is under way, after it, from somebody else, with something else.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use testkit::{TestDb, break_commits, for_each_engine, mend_commits};

use crate::shop::{Answer, SOON, Shop, order};
use crate::world::{Call, Trouble};

fn declined(buyer: &str) -> Value {
    let mut wish = order(buyer, 1);
    wish["card"] = "card_declined".into();
    wish
}

for_each_engine! {
    async fn a_repeat_is_answered_as_the_first_was_byte_for_byte(db: TestDb) {
        let shop = Shop::open_with(db, 2, 2, |_| {}).await;
        for (key, wish, status) in [
            ("sold", order("ann", 2), 201),
            ("declined", declined("ann"), 409), // nothing is left: sold out comes before the card
            ("short", order("ann", 1), 409),
        ] {
            let first = shop.buy(key, &wish).await;
            assert_eq!((first.status, first.replayed()), (status, false), "{}", first.text);
            let calls = shop.world.seen().len();
            for spelling in [key.to_owned(), format!("\"{key}\"")] {
                let again = shop.buy(&spelling, &wish).await;
                assert_eq!((again.status, &again.text), (first.status, &first.text));
                assert_eq!(again.header("content-type"), first.header("content-type"));
                assert_eq!(again.header("location"), first.header("location"));
                assert!(again.replayed());
            }
            assert_eq!(shop.world.seen().len(), calls, "a repeat asks nobody");
        }
    }

    async fn a_decline_is_kept_and_a_new_key_on_the_same_cart_works(db: TestDb) {
        let shop = Shop::open(db, 5).await;
        let first = shop.buy("k-1", &declined("ann")).await;
        assert_eq!((first.status, first.slug().as_str()), (402, "payment-declined"));
        let again = shop.buy("k-1", &declined("ann")).await;
        assert_eq!((again.status, again.replayed(), again.text), (402, true, first.text));
        assert_eq!(shop.buy("k-2", &order("ann", 1)).await.status, 201);
    }

    async fn a_key_with_another_order_is_refused_before_and_after_the_first_has_ended(db: TestDb) {
        let shop = Shop::open_with(db, 5, 2, |_| {}).await;
        shop.world.next(Call::PlaceHold, Trouble::Stuck);
        let (wish, other) = (order("ann", 1), order("ann", 2));
        let first = async {
            let answer = shop.buy("k-1", &wish).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
        };
        let meanwhile = async {
            testkit::eventually(SOON, "a call that is stuck", async || {
                (shop.world.calls(Call::PlaceHold) == 1).then_some(())
            })
            .await;
            let reused = shop.buy("k-1", &other).await;
            assert_eq!((reused.status, reused.slug().as_str()), (422, "idempotency-key-reused"));
            let running = shop.buy("k-1", &wish).await;
            assert_eq!((running.status, running.slug().as_str()), (409, "purchase-in-progress"));
            assert_eq!(running.header("retry-after"), Some("1"));
            shop.world.go_on();
        };
        tokio::join!(first, meanwhile);
        let reused = shop.buy("k-1", &other).await;
        assert_eq!((reused.status, reused.slug().as_str()), (422, "idempotency-key-reused"));
        assert_eq!(shop.buy("k-1", &declined("ann")).await.slug(), "idempotency-key-reused");
        assert_eq!(shop.world.captures(), 1);
    }

    async fn who_hangs_up_inside_the_section_has_bought_all_the_same(db: TestDb) {
        let shop = Shop::open(db, 5).await;
        let wish = order("ann", 1);
        let held_up = shop.buying("k-1", &wish).header("fault", "checkout.critical-section=delay=400ms");
        let hung_up = held_up.timeout(Duration::from_millis(200)).send().await;
        assert!(hung_up.is_err_and(|error| error.is_timeout()));
        // The claim of a purchase that nobody drives would be renewed for longer than anybody waits here.
        let listed = testkit::eventually(SOON, "the purchase to be completed by itself", async || {
            let list = shop.get("/v1/purchases?buyer=ann").await.json();
            (list["purchases"][0]["status"] == "completed").then_some(list)
        })
        .await;
        let replay = shop.buy("k-1", &wish).await;
        assert_eq!((replay.status, replay.replayed()), (201, true), "{}", replay.text);
        assert_eq!(listed["purchases"][0]["id"], replay.id());
        assert_eq!((shop.world.sold(), shop.world.captures()), (1, 1));
    }

    async fn the_same_key_of_another_buyer_is_another_key(db: TestDb) {
        let shop = Shop::open(db, 5).await;
        let ann = shop.buy("k-1", &order("ann", 1)).await;
        let bob = shop.buy("k-1", &order("bob", 1)).await;
        assert_eq!((ann.status, bob.status), (201, 201));
        assert_ne!(ann.id(), bob.id());
        assert!(!bob.replayed());
    }

    async fn thirty_at_once_with_one_key_make_one_purchase(db: TestDb) {
        let shop = Shop::open_with(db, 100, 2, |_| {}).await;
        for strategy in ["atomic", "optimistic"] {
            let wish = order(strategy, 1);
            let storm = (0..30).map(|_| {
                Answer::of(shop.buying("k-1", &wish).header("lock-strategy", strategy))
            });
            let answers = join_all(storm).await;
            let first = answers.iter().filter(|answer| answer.status == 201 && !answer.replayed()).count();
            assert_eq!(first, 1, "{strategy}");
            for answer in &answers {
                let in_progress = answer.slug() == "purchase-in-progress";
                assert!(in_progress || answer.status == 201, "{} {}", answer.status, answer.text);
            }
            let list = shop.get(&format!("/v1/purchases?buyer={strategy}")).await.json();
            assert_eq!(list["purchases"].as_array().unwrap().len(), 1);
        }
        assert_eq!((shop.world.captures(), shop.world.sold()), (2, 2));
    }

    async fn one_mutex_per_process_is_enough_for_one_process(db: TestDb) {
        let shop = Shop::open(db, 100).await;
        let wish = order("ann", 1);
        let storm = (0..30).map(|_| Answer::of(shop.buying("k-1", &wish).header("lock-strategy", "process")));
        join_all(storm).await;
        assert_eq!(shop.world.captures(), 1);
    }

    async fn without_a_guard_one_key_can_buy_twice(db: TestDb) {
        // The lab's other half: nothing in the book may hide the race. The fault widens the window between the
        // look and the insert, so that the test does not depend on luck.
        let shop = Shop::open_with(db, 100, 2, |_| {}).await;
        let wish = order("ann", 1);
        let storm = (0..2).map(|_| {
            let request = shop.buying("k-1", &wish).header("lock-strategy", "none");
            Answer::of(request.header("fault", "checkout.critical-section=delay=500ms"))
        });
        let answers = join_all(storm).await;
        assert!(answers.iter().all(|answer| answer.status == 201));
        assert_ne!(answers[0].id(), answers[1].id());
        assert_eq!(shop.world.captures(), 2);
        let replay = shop.buy("k-1", &wish).await;
        assert!(replay.replayed(), "{}", replay.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_an_answer_is_an_unknown_outcome_and_the_same_key_tells() {
    let Some(db) = testkit::postgres().await else {
        return;
    };
    let url = db.url().to_owned();
    let shop = Shop::open(db, 10).await;
    break_commits(&url, "purchase").await;
    let unknown = shop.buy("k-1", &order("ann", 1)).await;
    assert_eq!(
        (unknown.status, unknown.slug().as_str()),
        (503, "outcome-unknown"),
        "{}",
        unknown.text
    );
    assert!(unknown.header("retry-after").is_some());
    mend_commits(&url, "purchase").await;
    assert_eq!(shop.buy("k-1", &order("ann", 1)).await.status, 201);
    assert_eq!((shop.world.sold(), shop.world.captures()), (1, 1));
    shop.close().await;
}
