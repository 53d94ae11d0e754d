//! Nodes that stop and come back: what was granted stays granted, and tokens only grow.

use std::time::Duration;

use serde_json::json;

use crate::api::{Session, until_waiters};
use crate::cluster::{Cluster, SOON};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_and_answers_stay_across_an_election_and_a_restart_of_all() {
    let mut cluster = Cluster::start(3).await;
    let session = cluster.session().await;
    let held = session.granted(1, &["held"], 0).await;
    let before = session.granted(2, &["gate"], 0).await;
    session.release(2).await.expect(204);

    let leader = cluster.leader().await;
    cluster.stop(leader).await;
    assert_eq!(
        session.granted(1, &["held"], 0).await,
        held,
        "the new leader remembers"
    );
    session
        .acquire(2, &["gate"], 0)
        .await
        .expect_problem(409, "already-released");
    let after = session.granted(3, &["gate"], 0).await;
    assert!(after > before);
    session.release(3).await.expect(204);

    cluster.stop_all().await;
    cluster.start_all().await;
    assert_eq!(session.granted(1, &["held"], 0).await, held, "the disks remember");
    session
        .acquire(3, &["gate"], 0)
        .await
        .expect_problem(409, "already-released");
    let last = session.granted(4, &["gate"], 0).await;
    assert!(last > after);
    let lock = cluster.api.get("/v1/locks/held").await.expect(200);
    assert_eq!(lock["holder"]["fencing_token"], held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_a_leader_that_stops_keep_their_place() {
    let mut cluster = Cluster::start(3).await;
    let ttl = Duration::from_secs(10);
    let holder = cluster.client("holder", ttl).await;
    let grant = holder
        .acquire(&["gate".to_owned()], Duration::ZERO)
        .await
        .expect("granted");
    let mut waiting = Vec::new();
    for place in 1..=3 {
        let client = cluster.client(&format!("waiter {place}"), ttl).await;
        waiting.push(tokio::spawn(async move {
            let grant = client
                .acquire(&["gate".to_owned()], Duration::from_secs(40))
                .await
                .expect("granted");
            let token = grant.fencing_token();
            grant.release().await.expect("released");
            token
        }));
        until_waiters(&cluster.api, "gate", place).await;
    }
    let leader = cluster.leader().await;
    cluster.stop(leader).await;
    cluster.leader().await;
    until_waiters(&cluster.api, "gate", 3).await;
    assert!(!grant.is_lost(), "an election costs no session its life");
    grant.release().await.expect("released");
    let mut tokens = Vec::new();
    for waiter in waiting {
        tokens.push(waiter.await.expect("no waiter fails"));
    }
    assert!(
        tokens.is_sorted(),
        "first come, first served, also across an election: {tokens:?}"
    );
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_quorum_nothing_is_granted_and_with_it_everything_goes_on() {
    let mut cluster = Cluster::start(3).await;
    let client = cluster.client("patient", Duration::from_secs(30)).await;
    let grant = client
        .acquire(&["gate".to_owned()], Duration::ZERO)
        .await
        .expect("granted");
    let survivor = cluster.leader().await;
    for at in (0..3).filter(|at| *at != survivor) {
        cluster.stop(at).await;
    }
    let url = cluster.url(survivor);
    let reply = testkit::eventually(SOON, "a node that knows it is alone", async || {
        let reply = cluster
            .api
            .once(reqwest::Method::GET, &format!("{url}/v1/locks/gate"), None)
            .await
            .ok()?;
        (reply.status == 503).then_some(reply)
    })
    .await;
    assert!(
        matches!(reply.slug(), "no-leader" | "outcome-unknown"),
        "{}",
        reply.body
    );
    let ready = format!("{url}/readyz");
    testkit::eventually(SOON, "a node that does not call itself ready", async || {
        let reply = cluster.api.once(reqwest::Method::GET, &ready, None).await.ok()?;
        (reply.status == 503).then_some(())
    })
    .await;
    let release = tokio::spawn(grant.release());
    cluster.start_all().await;
    release
        .await
        .expect("no panic")
        .expect("released once there is a quorum");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_is_left_alone_names_no_leader() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let (alone, other) = ((leader + 1) % 3, (leader + 2) % 3);
    // The leader last: with two of them left, another one would be elected.
    cluster.stop(other).await;
    cluster.stop(leader).await;
    let ask = async |cluster: &Cluster, path: &str| {
        let url = format!("{}{path}", cluster.url(alone));
        cluster
            .api
            .once(reqwest::Method::GET, &url, None)
            .await
            .expect("an answer")
    };
    testkit::eventually(SOON, "a follower that knows it is alone", async || {
        (ask(&cluster, "/v1/locks/gate").await.status == 503).then_some(())
    })
    .await;
    ask(&cluster, "/v1/locks/gate")
        .await
        .expect_problem(503, "no-leader");
    ask(&cluster, "/readyz").await.expect_problem(503, "not-ready");
    assert!(ask(&cluster, "/v1/cluster").await.expect(200)["leader"].is_null());

    cluster.start_all().await;
    testkit::eventually(SOON, "a leader that it hears", async || {
        (ask(&cluster, "/readyz").await.status == 200).then_some(())
    })
    .await;
}

/// Nobody answers it, since it asks nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_node_is_its_own_majority_for_as_long_as_it_lives() {
    let cluster = Cluster::start(1).await;
    let holder = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let other = cluster.session().await;
    let url = cluster.url(0);
    let (path, wait) = (format!("{url}{}/acquisitions", other.path()), 5_000);
    // Not asked again when the outcome is unknown; and the wait is several elections' time.
    let body = Session::acquire_body(1, &["gate"], wait);
    let ask = cluster.api.once(reqwest::Method::POST, &path, Some(&body));
    ask.await
        .expect("an answer")
        .expect_problem(503, "lock-wait-timeout");
    let ready = format!("{url}/readyz");
    let ask = cluster.api.once(reqwest::Method::GET, &ready, None);
    ask.await.expect("an answer").expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_is_replaced_and_its_waiters_move_on() {
    let cluster = Cluster::start(3).await;
    let ttl = Duration::from_secs(10);
    let holder = cluster.client("holder", ttl).await;
    let grant = holder
        .acquire(&["gate".to_owned()], Duration::ZERO)
        .await
        .expect("granted");
    let client = cluster.client("waiter", ttl).await;
    let waiting = tokio::spawn(async move {
        let grant = client
            .acquire(&["gate".to_owned()], Duration::from_secs(40))
            .await
            .expect("granted");
        grant.fencing_token()
    });
    until_waiters(&cluster.api, "gate", 1).await;
    let leader = cluster.leader().await;
    for other in (0..3).filter(|at| *at != leader) {
        cluster
            .arm(
                leader,
                &format!("raft.peer/{}", other + 1),
                json!({ "effect": "error=503" }),
            )
            .await;
    }
    let before = grant.fencing_token();
    grant.release().await.expect("released at the new leader");
    let after = tokio::time::timeout(SOON, waiting)
        .await
        .expect("granted in time")
        .expect("no panic");
    assert!(after > before);
    for other in (0..3).filter(|at| *at != leader) {
        cluster.disarm(leader, &format!("raft.peer/{}", other + 1)).await;
    }
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_are_asked_for_again_and_nothing_is_granted_twice() {
    let cluster = Cluster::start(3).await;
    let client = cluster.client("in doubt", Duration::from_secs(20)).await;
    // Half of the batches lose their answers, whoever leads.
    for at in 0..3 {
        cluster
            .arm(
                at,
                "lock.after-commit",
                json!({ "effect": "drop-reply", "percent": 50, "seed": 7 }),
            )
            .await;
    }
    let mut tokens = Vec::new();
    for _ in 0..20 {
        let grant = client
            .acquire(&["gate".to_owned()], SOON)
            .await
            .expect("granted in spite of it");
        tokens.push(grant.fencing_token());
        grant.release().await.expect("released in spite of it");
    }
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    for at in 0..3 {
        cluster.disarm(at, "lock.after-commit").await;
    }
    cluster.nothing_is_left().await;
    // One grant for each attempt, however often it was asked for.
    let next = client.acquire(&["gate".to_owned()], SOON).await.expect("granted");
    assert_eq!(next.fencing_token(), tokens[0] + 20);
}
