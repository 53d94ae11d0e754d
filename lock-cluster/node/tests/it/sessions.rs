//! Sessions: how long they live, and what their end frees.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::api::until_waiters;
use crate::cluster::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_again_is_the_same_session_and_closing_again_is_no_error() {
    let cluster = Cluster::start(3).await;
    let path = format!("/v1/sessions/{}", Uuid::new_v4());
    let open = json!({ "ttl_ms": 5000, "label": "first" });
    let first = cluster
        .api
        .lead(Method::PUT, &path, Some(&open))
        .await
        .expect(201);
    assert_eq!(first["ttl_ms"], 5000);
    let other = json!({ "ttl_ms": 9000, "label": "second" });
    let again = cluster
        .api
        .lead(Method::PUT, &path, Some(&other))
        .await
        .expect(200);
    assert_eq!(again["ttl_ms"], 5000, "the first open decides");
    // A keep-alive needs no body.
    let alive = cluster
        .api
        .lead(Method::POST, &format!("{path}/keep-alive"), None)
        .await
        .expect(200);
    assert_eq!(alive["ttl_ms"], 5000);
    cluster.api.lead(Method::DELETE, &path, None).await.expect(204);
    cluster.api.lead(Method::DELETE, &path, None).await.expect(204);
    cluster
        .api
        .lead(Method::POST, &format!("{path}/keep-alive"), None)
        .await
        .expect_problem(410, "session-expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_not_kept_alive_dies_and_frees_its_locks() {
    let cluster = Cluster::start(3).await;
    let ttl = Duration::from_millis(900);
    let heir = cluster.session().await;
    let before = Instant::now();
    let dying = cluster.session_with(ttl).await;
    dying.granted(1, &["gate"], 0).await;
    heir.granted(1, &["gate"], 30_000).await;
    let lived = before.elapsed();
    assert!(lived >= ttl, "it lives at least its TTL, this one {lived:?}");
    assert!(
        lived < ttl + Duration::from_secs(3),
        "it is gone within TTL + 1 s (and a busy machine), not {lived:?}"
    );
    dying
        .keep_alive(None)
        .await
        .expect_problem(410, "session-expired");
    dying
        .acquire(2, &["gate"], 0)
        .await
        .expect_problem(410, "session-expired");
    dying.release(1).await.expect_problem(410, "session-expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_session_outlives_many_ttls() {
    let cluster = Cluster::start(3).await;
    let ttl = Duration::from_millis(1500);
    let client = cluster.client("a survivor", ttl).await;
    let grant = client
        .acquire(&["gate".to_owned()], Duration::ZERO)
        .await
        .expect("granted");
    // Not lost for four times its TTL: waiting for what must not happen takes the whole time.
    let lost = tokio::time::timeout(ttl * 4, grant.lost()).await;
    assert!(lost.is_err() && !grant.is_lost());
    grant.release().await.expect("released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_a_session_frees_what_it_holds_and_its_places_in_line() {
    let cluster = Cluster::start(3).await;
    let holder = cluster.session().await;
    let waiter = cluster.session().await;
    let last = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let waiting = tokio::spawn({
        let waiter = waiter.clone();
        async move { waiter.acquire(1, &["gate"], 60_000).await }
    });
    until_waiters(&cluster.api, "gate", 1).await;
    let granted = tokio::spawn(async move { last.granted(1, &["gate"], 60_000).await });
    until_waiters(&cluster.api, "gate", 2).await;
    waiter.close().await.expect(204);
    // Its own waiting request hears of the end.
    waiting
        .await
        .expect("no panic")
        .expect_problem(410, "session-expired");
    holder.close().await.expect(204);
    granted.await.expect("the last one in line is granted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_a_bounded_number_of_unacknowledged_attempts() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    for acquire_id in 1..=1024 {
        session.release(acquire_id).await.expect_problem(404, "not-held");
    }
    session
        .acquire(1025, &["gate"], 0)
        .await
        .expect_problem(429, "too-many-unacknowledged");
    session.keep_alive(Some(1024)).await.expect(200);
    session.granted(1025, &["gate"], 0).await;
}
