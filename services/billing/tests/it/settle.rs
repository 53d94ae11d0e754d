//! What is unknown stays unknown until somebody asks again: the caller, or the settling worker.

use std::time::Duration;

use reqwest::RequestBuilder;
use testkit::{TestDb, break_commits, mend_commits};

use crate::support::{Ask, ONCE, SOON, World};

fn atomic(call: RequestBuilder) -> RequestBuilder {
    call.header("lock-strategy", "atomic")
}

testkit::for_each_engine! {
    async fn an_unknown_outcome_is_never_a_decline_and_can_be_asked_again(db: TestDb) {
        let world = World::start(&db).await;
        for strategy in ["process", "optimistic", "atomic"] {
            let id = format!("p-{strategy}");
            let call = |call: RequestBuilder| call.header("lock-strategy", strategy).answer();
            world.gateway_fault("gateway.after-charge", Some("drop-reply")).await;
            let unknown = call(world.put(&id, "card_ok")).await;
            assert_eq!(unknown.problem(), (503, "payment-unknown"), "{strategy}");
            assert!(unknown.headers.contains_key("retry-after"));
            assert_eq!(world.get(&id).await.payment_status(), "authorizing");
            assert_eq!(call(world.capture(&id)).await.problem(), (409, "payment-not-authorized"));
            world.gateway_fault("gateway.after-charge", None).await;
            assert_eq!(call(world.put(&id, "card_ok")).await.status, 201);

            world.gateway_fault("gateway.after-charge", Some("drop-reply")).await;
            assert_eq!(call(world.capture(&id)).await.problem(), (503, "payment-unknown"));
            assert_eq!(world.get(&id).await.payment_status(), "authorized", "as far as anybody knows");
            world.gateway_fault("gateway.after-charge", None).await;
            assert_eq!(call(world.capture(&id)).await.payment_status(), "captured");
            assert_eq!(world.ledger(&id).await, ONCE, "{strategy}");
        }
        world.stop().await;
    }

    async fn a_crash_between_the_charge_and_its_record_charges_once(db: TestDb) {
        let world = World::start(&db).await;
        // The answer is there, and then nothing is recorded: what a crash at the worst moment leaves behind.
        let process = |call: RequestBuilder| call.header("lock-strategy", "process");
        let crash = |call: RequestBuilder, point: &str| {
            process(call).header("fault", format!("billing.{point}=error=500")).answer()
        };
        assert_eq!(crash(world.put("p-1", "card_ok"), "after-authorize").await.status, 500);
        assert_eq!(process(world.put("p-1", "card_ok")).answer().await.status, 201);
        assert_eq!(crash(world.capture("p-1"), "after-capture").await.status, 500);
        assert_eq!(process(world.capture("p-1")).answer().await.payment_status(), "captured");
        assert_eq!(world.ledger("p-1").await, ONCE);
        world.stop().await;
    }

    async fn the_worker_settles_what_callers_left_behind(db: TestDb) {
        let world = World::start_with(&db, |config| {
            config.settle_after = Duration::from_millis(50);
            config.settle_every = Duration::from_millis(20);
        })
        .await;
        assert_eq!(atomic(world.put("p-cap", "card_ok")).answer().await.status, 201);
        assert_eq!(atomic(world.put("p-void", "card_ok")).answer().await.status, 201);
        world.captured("p-ref").await;

        world.gateway_fault("gateway.after-charge", Some("drop-reply")).await;
        assert_eq!(atomic(world.put("p-auth", "card_ok")).answer().await.status, 503);
        assert_eq!(atomic(world.put("p-dec", "card_declined")).answer().await.status, 503);
        assert_eq!(atomic(world.capture("p-cap")).answer().await.status, 503);
        assert_eq!(atomic(world.void("p-void")).answer().await.status, 503);
        assert_eq!(world.refund("p-ref", "r-1", 200).answer().await.status, 503);
        world.gateway_fault("gateway.after-charge", None).await;

        for (id, status) in [("p-auth", "authorized"), ("p-dec", "declined"), ("p-cap", "captured")] {
            let settled = async || (world.get(id).await.payment_status() == status).then_some(());
            testkit::eventually(SOON, &format!("{id} to be {status}"), settled).await;
        }
        let voided = async || {
            let url = format!("{}/v1/ledger/p-void", world.gateway_url);
            let lines = world.http.get(url).answer().await;
            (lines.body.as_array()?.last()?["kind"] == "void").then_some(())
        };
        testkit::eventually(SOON, "the void at the gateway", voided).await;
        let refunded = async || (world.ledger("p-ref").await.refunded_minor == 200).then_some(());
        testkit::eventually(SOON, "the refund at the gateway", refunded).await;
        assert_eq!(world.ledger("p-cap").await, ONCE);
        assert_eq!(world.ledger("p-auth").await.authorizations, 1);
        world.stop().await;
    }

    async fn refunds_that_never_go_through_keep_no_other_waiting(db: TestDb) {
        let world = World::start_with(&db, |config| {
            config.settle_after = Duration::from_millis(50);
            config.settle_every = Duration::from_millis(20);
        })
        .await;
        for id in ["p-stuck", "p-ref", "p-later"] {
            world.captured(id).await;
        }
        world.gateway_fault("gateway.before-charge", Some("error=503")).await;
        for (payment, refund) in [("p-stuck", "r-1"), ("p-stuck", "r-2"), ("p-ref", "r-1"), ("p-later", "r-1")] {
            assert_eq!(world.refund(payment, refund, 200).answer().await.status, 503);
        }
        // From here on it answers for all but the oldest.
        world.gateway_refuses("p-stuck").await;
        for id in ["p-ref", "p-later"] {
            let refunded = async || (world.ledger(id).await.refunded_minor == 200).then_some(());
            testkit::eventually(SOON, &format!("the refund of {id} behind one that is stuck"), refunded).await;
        }
        assert_eq!(world.ledger("p-stuck").await.refunded_minor, 0);

        world.gateway_fault("gateway.before-charge", None).await;
        let refunded = async || (world.ledger("p-stuck").await.refunded_minor == 400).then_some(());
        testkit::eventually(SOON, "those that were stuck", refunded).await;
        world.stop().await;
    }

    async fn refunds_go_through_beside_a_payment_that_does_not(db: TestDb) {
        let world = World::start_with(&db, |config| {
            // The payment is due again as soon as it has been asked about in vain, and there is one worker only: a second
            // one would find the payment claimed, and go on.
            config.settle_after = Duration::ZERO;
            let one = config.instance == "billing-1";
            config.settle_every = if one { Duration::from_millis(20) } else { SOON * 10 };
        })
        .await;
        world.captured("p-ref").await;
        world.gateway_fault("gateway.before-charge", Some("error=503")).await;
        assert_eq!(atomic(world.put("p-stuck", "card_ok")).answer().await.status, 503);
        assert_eq!(world.refund("p-ref", "r-1", 200).answer().await.status, 503);
        world.gateway_refuses("p-stuck").await;
        let refunded = async || (world.ledger("p-ref").await.refunded_minor == 200).then_some(());
        testkit::eventually(SOON, "the refund of another payment", refunded).await;
        assert_eq!(world.get("p-stuck").await.payment_status(), "authorizing");
        world.stop().await;
    }

    async fn a_void_of_a_doubtful_capture_finds_out_first(db: TestDb) {
        let world = World::start(&db).await;
        assert_eq!(atomic(world.put("p-1", "card_ok")).answer().await.status, 201);
        world.gateway_fault("gateway.after-charge", Some("drop-reply")).await;
        assert_eq!(atomic(world.capture("p-1")).answer().await.problem(), (503, "payment-unknown"));
        world.gateway_fault("gateway.after-charge", None).await;
        assert_eq!(atomic(world.void("p-1")).answer().await.problem(), (409, "payment-captured"));
        assert_eq!(world.get("p-1").await.payment_status(), "captured");
        assert_eq!(world.ledger("p-1").await, ONCE);
        world.stop().await;
    }

    async fn a_void_that_finds_the_money_taken_leaves_a_capture_to_be_settled(db: TestDb) {
        let world = World::start_with(&db, |config| {
            // Longer than the void takes: the worker is not to be one more racer.
            config.settle_after = Duration::from_secs(3);
            config.settle_every = Duration::from_millis(20);
        })
        .await;
        let none = |call: RequestBuilder| call.header("lock-strategy", "none").header("payment-key", "stable");
        assert_eq!(none(world.put("p-1", "card_ok")).answer().await.status, 201);
        // Without a guard: it looks, somebody captures and dies before the record, it overwrites what it finds.
        let void = none(world.void("p-1")).header("fault", "billing.critical-section=delay=1s");
        let crash = async {
            let capture = none(world.capture("p-1")).header("fault", "billing.after-capture=error=500");
            capture.answer().await
        };
        let (void, crashed) = futures::join!(void.answer(), crash);
        assert_eq!((crashed.status.as_u16(), void.problem()), (500, (409, "payment-captured")));
        let captured = async || (world.get("p-1").await.payment_status() == "captured").then_some(());
        testkit::eventually(SOON, "the capture to be on the book again", captured).await;
        assert_eq!(world.ledger("p-1").await, ONCE);
        world.stop().await;
    }

    async fn a_lock_cluster_that_is_away_holds_up_only_the_payments_that_need_it(db: TestDb) {
        let world = World::start_with_cluster(&db).await;
        world.captured("p-ref").await;
        world.gateway_fault("gateway.after-charge", Some("drop-reply")).await;
        // More than the worker looks at in one go, and older than all others.
        let locked = (0..66).map(|n| {
            let call = world.put(&format!("p-raft-{n}"), "card_ok").header("lock-strategy", "raft");
            async move { call.answer().await.status }
        });
        assert!(futures::future::join_all(locked).await.iter().all(|status| *status == 503));
        assert_eq!(atomic(world.put("p-atomic", "card_ok")).answer().await.status, 503);
        world.gateway_fault("gateway.before-charge", Some("error=503")).await;
        assert_eq!(world.refund("p-ref", "r-1", 200).answer().await.status, 503);
        world.stop().await;

        let nobody = format!("http://127.0.0.1:{}", testkit::free_ports(1)[0]);
        let world = World::start_with(&db, |config| {
            config.lock_urls = vec![nobody.clone()];
            config.settle_after = Duration::from_millis(50);
            config.settle_every = Duration::from_millis(20);
        })
        .await;
        let authorized = async || (world.get("p-atomic").await.payment_status() == "authorized").then_some(());
        testkit::eventually(SOON, "a payment of another strategy", authorized).await;
        let refunded = async || (world.ledger("p-ref").await.refunded_minor == 200).then_some(());
        testkit::eventually(SOON, "a refund", refunded).await;
        assert_eq!(world.get("p-raft-0").await.payment_status(), "authorizing");
        world.stop().await;
    }

    async fn a_caller_that_hangs_up_does_not_stop_its_charge(db: TestDb) {
        let world = World::start(&db).await;
        let hasty = atomic(world.put("p-1", "card_slow")).timeout(Duration::from_millis(300)).send().await;
        assert!(hasty.is_err(), "{hasty:?}");
        let authorized = async || (world.get("p-1").await.payment_status() == "authorized").then_some(());
        testkit::eventually(SOON, "the charge to be recorded", authorized).await;
        assert_eq!(world.ledger("p-1").await.authorizations, 1);
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_an_answer_is_an_unknown_outcome_and_the_same_request_again_tells() {
    let Some(db) = testkit::postgres().await else {
        return;
    };
    let world = World::start(&db).await;
    let url = db.url_for("billing");
    world.captured("p-ref").await;

    break_commits(&url, "payment").await;
    for call in [
        atomic(world.put("p-1", "card_ok")),
        world.refund("p-ref", "r-1", 200),
    ] {
        let unknown = call.answer().await;
        assert_eq!(unknown.problem(), (503, "outcome-unknown"), "{unknown:?}");
        assert!(unknown.is_busy());
    }
    mend_commits(&url, "payment").await;
    assert_eq!(atomic(world.put("p-1", "card_ok")).answer().await.status, 201);
    assert_eq!(world.refund("p-ref", "r-1", 200).answer().await.status, 201);

    break_commits(&url, "payment").await;
    assert_eq!(
        atomic(world.capture("p-1")).answer().await.problem(),
        (503, "outcome-unknown")
    );
    mend_commits(&url, "payment").await;
    assert_eq!(
        atomic(world.capture("p-1")).answer().await.payment_status(),
        "captured"
    );
    assert_eq!(world.ledger("p-1").await, ONCE);
    world.stop().await;
}
