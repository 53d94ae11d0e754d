//! Many at once: the point of all this.

use std::time::Duration;

use futures::future::join_all;
use reqwest::RequestBuilder;
use testkit::TestDb;

use crate::support::{Answer, Ask, ONCE, SOON, World};

/// 30 parallel authorizations of one payment over both instances, then 30 parallel captures; every caller
/// patiently asks again after a 503.
///
/// With *fresh* keys: with stable ones the gateway would recognise every second charge by its key, and a guard
/// that guards nothing would pass. The window between look and write is widened for the same reason.
async fn thirty_of_each(world: &World, id: &str, strategy: &str) {
    let call = |call: RequestBuilder| {
        let call = call
            .header("lock-strategy", strategy)
            .header("payment-key", "fresh");
        call.header("fault", "billing.critical-section=delay=30ms")
            .final_answer()
    };
    let puts = join_all((0..30).map(|_| call(world.put(id, "card_ok")))).await;
    let created = puts.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(created, 1, "{strategy}: one of them authorized it");
    assert!(
        puts.iter().all(|answer| answer.status.is_success()),
        "{strategy}: {puts:?}"
    );
    let captures = join_all((0..30).map(|_| call(world.capture(id)))).await;
    assert!(
        captures
            .iter()
            .all(|answer| answer.payment_status() == "captured"),
        "{strategy}: {captures:?}"
    );
    assert_eq!(world.ledger(id).await, ONCE, "{strategy}");
}

testkit::for_each_engine! {
    async fn thirty_at_once_are_one_charge_without_a_lock(db: TestDb) {
        let world = World::start(&db).await;
        for strategy in ["atomic", "optimistic"] {
            thirty_of_each(&world, &format!("p-{strategy}"), strategy).await;
        }
        world.stop().await;
    }

    async fn thirty_at_once_are_one_charge_under_the_lock_cluster(db: TestDb) {
        let world = World::start_with_cluster(&db).await;
        for strategy in ["raft", "raft-unfenced"] {
            thirty_of_each(&world, &format!("p-{strategy}"), strategy).await;
        }
        world.stop().await;
    }

    async fn thirty_at_once_charge_more_than_once_without_a_guard(db: TestDb) {
        let world = World::start(&db).await;
        // The window between look and write is widened, so that this test does not depend on luck.
        let call = |call: RequestBuilder| {
            let fault = "billing.critical-section=delay=100ms";
            call.header("lock-strategy", "none").header("fault", fault).answer()
        };
        let puts = join_all((0..30).map(|_| call(world.put("p-1", "card_ok")))).await;
        assert!(puts.iter().all(|answer| answer.status.is_success()), "{puts:?}");
        let captures = join_all((0..30).map(|_| call(world.capture("p-1")))).await;
        assert!(captures.iter().all(|answer| answer.status.is_success()), "{captures:?}");
        let totals = world.ledger("p-1").await;
        assert!(totals.authorizations > 1 && totals.captures > 1, "nothing hides the race: {totals:?}");
        world.stop().await;
    }

    async fn one_mutex_per_process_is_right_with_one_instance_and_wrong_with_two(db: TestDb) {
        let mut world = World::start(&db).await;
        let both = world.urls.clone();
        world.urls.truncate(1);
        thirty_of_each(&world, "p-1", "process").await;

        world.urls = both;
        // Fresh keys, so that the gateway's own memory does not hide the race.
        let call = |call: RequestBuilder| {
            let call = call.header("lock-strategy", "process").header("payment-key", "fresh");
            call.header("fault", "billing.critical-section=delay=100ms").answer()
        };
        join_all((0..8).map(|_| call(world.put("p-2", "card_ok")))).await;
        assert!(world.ledger("p-2").await.authorizations > 1);
        world.stop().await;
    }

    async fn a_void_and_a_payment_at_once_never_leave_money_taken(db: TestDb) {
        let world = World::start(&db).await;
        for round in 0..8 {
            for strategy in ["atomic", "optimistic"] {
                let id = format!("p-{strategy}-{round}");
                let call = |call: RequestBuilder| call.header("lock-strategy", strategy).final_answer();
                let (authorized, voided) = futures::join!(call(world.put(&id, "card_ok")), call(world.void(&id)));
                assert_eq!(voided.status, 200, "{voided:?}");
                assert!([201, 409].contains(&authorized.status.as_u16()), "{authorized:?}");
                assert_eq!(call(world.capture(&id)).await.problem(), (409, "payment-voided"));
                assert_eq!(world.ledger(&id).await.captures, 0);
            }
        }
        world.stop().await;
    }

    async fn a_holder_that_slept_through_its_lock_is_refused_by_its_token(db: TestDb) {
        let world = World::start_with_cluster(&db).await;
        let raft = |call: RequestBuilder| call.header("lock-strategy", "raft");
        let put = |at: usize| raft(world.http.put(format!("{}/v1/payments/p-1", world.urls[at])))
            .json(&crate::support::payment("card_ok"));
        let capture = |at: usize| raft(world.http.post(format!("{}/v1/payments/p-1/capture", world.urls[at])));

        let (refused, winner) = sleeper_and_winner(&world, put(1), put(0), 1).await;
        assert_eq!(winner.status, 201, "{winner:?}");
        assert!(winner.body["timings"]["lock_wait_ms"].as_f64() > Some(100.0), "{winner:?}");
        assert_eq!(refused.problem(), (409, "stale-fencing-token"));
        let (refused, winner) = sleeper_and_winner(&world, capture(1), capture(0), 2).await;
        assert_eq!(winner.payment_status(), "captured", "{winner:?}");
        assert_eq!(refused.problem(), (409, "stale-fencing-token"));
        assert_eq!(world.ledger("p-1").await, ONCE);

        let call = world.call(reqwest::Method::POST, "/v1/audit-records");
        let records = call.json(&serde_json::json!({"payment_ids": ["p-1"]})).answer().await;
        assert_eq!(records.body["stale_tokens_rejected"], 2);
        world.stop().await;
    }

    async fn a_capture_by_a_holder_that_lost_its_lock_is_not_overwritten_by_the_void_that_came_after(db: TestDb) {
        let world = World::start_with_cluster(&db).await;
        let raft = |call: RequestBuilder| call.header("lock-strategy", "raft");
        let post = |at: usize, what: &str| {
            raft(world.http.post(format!("{}/v1/payments/p-1/{what}", world.urls[at])))
        };
        assert_eq!(raft(world.put("p-1", "card_ok")).answer().await.status, 201);
        // The older holder looks, sleeps through its lock, captures, and is slow to record it. The newer one has
        // looked before that capture, and writes after it.
        let slow = world.http.put(format!("{}/v1/faults/billing.after-capture", world.urls[1]));
        assert!(slow.json(&serde_json::json!({"effect": "delay=4s"})).answer().await.status.is_success());
        let void = post(0, "void").header("fault", "billing.critical-section=delay=3s");
        let (older, newer) = sleeper_and_winner(&world, post(1, "capture"), void, 1).await;
        assert!(older.status == 200 || older.problem() == (409, "stale-fencing-token"), "{older:?}");
        assert_eq!(newer.problem(), (409, "payment-captured"));
        assert_eq!(world.get("p-1").await.payment_status(), "captured", "money taken is on the book");
        assert_eq!(world.ledger("p-1").await, ONCE);
        world.stop().await;
    }

    async fn without_the_fence_a_holder_that_slept_through_its_lock_charges_too(db: TestDb) {
        let world = World::start_with_cluster(&db).await;
        // Fresh keys: with stable ones the gateway would recognise the second charge, and hide what happened.
        let unfenced = |call: RequestBuilder| {
            call.header("lock-strategy", "raft-unfenced").header("payment-key", "fresh")
        };
        let put = |at: usize| unfenced(world.http.put(format!("{}/v1/payments/p-1", world.urls[at])))
            .json(&crate::support::payment("card_ok"));
        let (sleeper, winner) = sleeper_and_winner(&world, put(1), put(0), 1).await;
        assert_eq!((sleeper.status.as_u16(), winner.status.as_u16()), (201, 201));
        assert_eq!(world.ledger("p-1").await.authorizations, 2);
        world.stop().await;
    }
}

/// Sends `sleeper` to the second instance, where it stops inside the critical section for three seconds, its
/// keep-alive too, three times as long as its session lives. Meanwhile sends `winner`.
async fn sleeper_and_winner(
    world: &World,
    sleeper: RequestBuilder,
    winner: RequestBuilder,
    nth: u64,
) -> (Answer, Answer) {
    let sleeper = sleeper.header("fault", "billing.critical-section=pause=3s");
    let sleeper = tokio::spawn(async move { sleeper.answer().await });
    let asleep = async || {
        let faults = world
            .http
            .get(format!("{}/v1/faults", world.urls[1]))
            .answer()
            .await;
        let points = faults.body["points"].as_array()?.clone();
        let fired = |point: &serde_json::Value| point["fired"].as_u64() >= Some(nth);
        points.iter().any(fired).then_some(())
    };
    testkit::eventually(SOON, "the first holder to sleep", asleep).await;
    let winner = winner.timeout(Duration::from_secs(20)).answer().await;
    (sleeper.await.expect("no panic"), winner)
}
