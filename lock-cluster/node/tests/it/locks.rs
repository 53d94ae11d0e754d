//! Acquire, wait, release: who holds when.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use testkit::eventually;
use tokio::sync::Mutex;

use crate::api::{Session, until_waiters};
use crate::cluster::{Cluster, SOON};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_lock_is_granted_at_once_and_shown_with_its_holder() {
    let cluster = Cluster::start(3).await;
    let session = cluster.session().await;
    let token = session.granted(1, &["event/1"], 0).await;
    let lock = cluster.api.get("/v1/locks/event/1").await.expect(200);
    assert_eq!(lock["name"], "event/1");
    assert_eq!(lock["holder"]["session_id"], session.id.to_string());
    assert_eq!(lock["holder"]["label"], "a test");
    assert_eq!(lock["holder"]["acquire_id"], 1);
    assert_eq!(lock["holder"]["fencing_token"], token);
    assert!(lock["holder"]["held_ms"].is_u64());
    assert_eq!(lock["waiters"], json!([]));
    let list = cluster.api.get("/v1/locks?prefix=event/").await.expect(200);
    assert_eq!(list["locks"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["locks"][0]["holder"]["fencing_token"], token);

    session.release(1).await.expect(204);
    session.release(1).await.expect(204);
    let lock = cluster.api.get("/v1/locks/event/1").await.expect(200);
    assert_eq!(lock["holder"], json!(null));
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_granted_in_the_order_in_which_they_came() {
    let cluster = Cluster::start(3).await;
    let holder = cluster.session().await;
    let first_token = holder.granted(1, &["gate"], 0).await;
    let granted = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for place in 1..=5 {
        let session = cluster.session().await;
        let granted = granted.clone();
        waiting.push(tokio::spawn(async move {
            let token = session.granted(1, &["gate"], 30_000).await;
            granted.lock().await.push((place, token));
            session.release(1).await.expect(204);
        }));
        until_waiters(&cluster.api, "gate", place).await;
    }
    holder.release(1).await.expect(204);
    for waiter in waiting {
        waiter.await.expect("it was granted");
    }
    let granted = granted.lock().await;
    let places: Vec<usize> = granted.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [1, 2, 3, 4, 5]);
    let tokens: Vec<u64> = std::iter::once(first_token)
        .chain(granted.iter().map(|(_, token)| *token))
        .collect();
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_is_refused_to_who_does_not_wait_and_to_who_waited_in_vain() {
    let cluster = Cluster::start(3).await;
    let holder = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let other = cluster.session().await;
    other
        .acquire(1, &["gate"], 0)
        .await
        .expect_problem(409, "lock-held");
    other
        .acquire(2, &["gate"], 150)
        .await
        .expect_problem(503, "lock-wait-timeout");
    // The same attempts again are answered the same.
    other
        .acquire(1, &["gate"], 0)
        .await
        .expect_problem(409, "lock-held");
    other
        .acquire(2, &["gate"], 150)
        .await
        .expect_problem(503, "lock-wait-timeout");
    until_waiters(&cluster.api, "gate", 0).await;
    // Nothing of them stays behind: with the holder gone, the lock is free.
    holder.release(1).await.expect(204);
    cluster.nothing_is_left().await;
    other.granted(3, &["gate"], 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_while_waiting_leaves_nothing() {
    let cluster = Cluster::start(3).await;
    let holder = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let other = cluster.session().await;
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.acquire(1, &["gate"], 60_000).await }
    });
    until_waiters(&cluster.api, "gate", 1).await;
    waiting.abort();
    until_waiters(&cluster.api, "gate", 0).await;
    holder.release(1).await.expect(204);
    cluster.nothing_is_left().await;
    let again = other
        .acquire(1, &["gate"], 0)
        .await
        .expect_problem(409, "already-released");
    assert_eq!(again["reason"], "abandoned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_acquire_id_is_answered_alike_by_every_node() {
    let cluster = Cluster::start(3).await;
    let session = cluster.session().await;
    let token = session.granted(1, &["gate"], 0).await;
    let follower = cluster.follower().await;
    let body = Session::acquire_body(1, &["gate"], 0);
    let url = format!("{}{}/acquisitions", cluster.url(follower), session.path());
    let elsewhere = cluster
        .api
        .once(Method::POST, &url, Some(&body))
        .await
        .expect("it answers");
    let elsewhere = elsewhere.expect_problem(421, "not-leader");
    let leader = elsewhere["leader"]["client_url"].as_str().expect("a URL");
    assert_eq!(elsewhere["leader"]["id"], cluster.leader().await + 1);
    let url = format!("{leader}{}/acquisitions", session.path());
    let again = cluster
        .api
        .once(Method::POST, &url, Some(&body))
        .await
        .expect("it answers")
        .expect(201);
    assert_eq!(again["fencing_token"], token);

    // For other names it is a mistake; once released it stays so; acknowledged it is forgotten.
    session
        .acquire(1, &["other"], 0)
        .await
        .expect_problem(409, "names-differ");
    session.release(1).await.expect(204);
    let over = session
        .acquire(1, &["gate"], 0)
        .await
        .expect_problem(409, "already-released");
    assert_eq!(over["reason"], "released");
    session.keep_alive(Some(1)).await.expect(200);
    session
        .acquire(1, &["gate"], 0)
        .await
        .expect_problem(409, "already-acknowledged");
    session.release(1).await.expect(204);
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_names_in_opposite_orders_never_deadlock() {
    let cluster = Cluster::start(3).await;
    let mut buyers = Vec::new();
    for number in 0..40 {
        let client = cluster.client("a buyer", Duration::from_secs(10)).await;
        let (a, b) = ("event/a".to_owned(), "event/b".to_owned());
        let names = if number % 2 == 0 { [a, b] } else { [b, a] };
        buyers.push(tokio::spawn(async move {
            let grant = client
                .acquire(&names, Duration::from_secs(30))
                .await
                .expect("granted in the end");
            assert_eq!(grant.names(), names);
            let token = grant.fencing_token();
            grant.release().await.expect("released");
            client.close().await;
            token
        }));
    }
    let mut tokens = Vec::new();
    for buyer in buyers {
        tokens.push(buyer.await.expect("no buyer fails"));
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 40, "each grant has a token of its own");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_taken_literally() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    let names = [
        "a/b",
        "a/../b",
        "..",
        ".",
        "//",
        "two words",
        "🎟️",
        "100%",
        "a%2Fb",
        "a/break",
        "?",
        "#",
        "ä\n",
    ];
    for (name, acquire_id) in names.iter().zip(1..) {
        session.granted(acquire_id, &[name], 0).await;
    }
    let list = cluster.api.get("/v1/locks").await.expect(200);
    let mut listed: Vec<&str> = list["locks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|lock| lock["name"].as_str())
        .collect();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, expected);
    // Each is found under its own path, however much of it is encoded.
    let leader = cluster.url(0);
    for (name, path) in [
        ("a/b", "a/b"),
        ("a/b", "a%2Fb"),
        ("a/../b", "a/../b"),
        ("..", ".."),
        ("..", "%2E%2E"),
        (".", "."),
        ("//", "//"),
        ("two words", "two%20words"),
        ("🎟️", "%F0%9F%8E%9F%EF%B8%8F"),
        ("100%", "100%25"),
        ("a%2Fb", "a%252Fb"),
        ("a/break", "a/break"),
        ("?", "%3F"),
        ("ä\n", "%C3%A4%0A"),
    ] {
        let (status, answer) = cluster
            .api
            .raw(&leader, "GET", &format!("/v1/locks/{path}"))
            .await;
        let shown = format!("\"name\":{}", json!(name));
        assert!(
            status == 200 && answer.contains(&shown) && answer.contains("fencing_token"),
            "{path}: {answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_list_can_be_narrowed_and_cut() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    session.granted(1, &["a/1", "a/2", "b/1"], 0).await;
    let names = async |query: &str| {
        let list = cluster.api.get(&format!("/v1/locks{query}")).await.expect(200);
        let locks = list["locks"].as_array().expect("a list").clone();
        locks
            .iter()
            .filter_map(|lock| lock["name"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("?prefix=a/").await, ["a/1", "a/2"]);
    assert_eq!(names("?limit=1").await, ["a/1"]);
    assert_eq!(names("").await, ["a/1", "a/2", "b/1"]);
    // A waiter for two names stands in both lines.
    let other = cluster.session().await;
    let waiting = tokio::spawn(async move { other.acquire(1, &["b/1", "a/1"], 60_000).await });
    eventually(SOON, "a waiter in both lines", async || {
        let a = cluster.api.get("/v1/locks/a/1").await.expect(200);
        let b = cluster.api.get("/v1/locks/b/1").await.expect(200);
        (a["waiters"].as_array()?.len() == 1 && b["waiters"].as_array()?.len() == 1).then_some(())
    })
    .await;
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_line_is_counted_whole_and_listed_from_its_head() {
    const WAITING: u64 = 130;
    let cluster = Cluster::start(1).await;
    let holder = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let crowd = Arc::new(cluster.session().await);
    let waiting: Vec<_> = (1..=WAITING)
        .map(|id| {
            let crowd = crowd.clone();
            tokio::spawn(async move { crowd.acquire(id, &["gate"], 60_000).await })
        })
        .collect();
    eventually(SOON, "everybody in line", async || {
        let status = cluster.api.get("/v1/cluster").await.expect(200);
        (status["waiters"] == WAITING).then_some(())
    })
    .await;
    let shown = cluster.api.get("/v1/locks/gate").await.expect(200);
    let listed = cluster.api.get("/v1/locks").await.expect(200)["locks"][0].clone();
    assert_eq!(shown["waiters"], listed["waiters"]);
    for lock in [shown, listed] {
        assert_eq!(lock["waiters"].as_array().map(Vec::len), Some(100));
        assert_eq!(lock["waiters_total"], WAITING);
        assert_eq!(lock["holder"]["fencing_token"], 1);
    }
    waiting.into_iter().for_each(|waiter| waiter.abort());
}
