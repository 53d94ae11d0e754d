//! The Rust client over a pipe: lost answers, broken pipes, and nodes that speak none.

use std::time::Duration;

use lock_client::{ClientConfig, LockClient, LockError, Protocol};
use serde_json::json;
use testkit::eventually;
use tokio::time::timeout;

use crate::api::until_waiters;
use crate::cluster::{Cluster, SOON};
use crate::proxy::Proxy;

const TTL: Duration = Duration::from_secs(20);

fn gate() -> Vec<String> {
    vec!["gate".to_owned()]
}

async fn client(url: String, protocol: Protocol) -> LockClient {
    let config = ClientConfig {
        ttl: TTL,
        protocol,
        ..ClientConfig::new([url])
    };
    LockClient::connect(config).await.expect("a client")
}

/// The token under which the gate is held, once it is.
async fn holders_token(cluster: &Cluster) -> u64 {
    eventually(SOON, "somebody holds the gate", async || {
        let lock = cluster.api.get("/v1/locks/gate").await.expect(200);
        lock["holder"]["fencing_token"].as_u64()
    })
    .await
}

/// How many pipes the node at this place has.
async fn pipes(cluster: &Cluster, at: usize) -> u64 {
    let (_, metrics) = cluster.api.raw(&cluster.url(at), "GET", "/metrics").await;
    let line = metrics.lines().find(|line| line.starts_with("lock_pipes{"));
    let count = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    count.expect("pipes are counted")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_calls_of_a_client_share_one_pipe() {
    let cluster = Cluster::start(3).await;
    let client = cluster.client("a client", TTL).await;
    let mut holding = Vec::new();
    for number in 0..100 {
        let client = client.clone();
        holding.push(tokio::spawn(async move {
            let grant = client.acquire(&[format!("own/{number}")], SOON).await;
            grant.expect("granted").release().await.expect("released");
        }));
    }
    for held in holding {
        held.await.expect("no one fails");
    }
    let leader = cluster.leader().await;
    assert_eq!(pipes(&cluster, leader).await, 1);
    cluster.nothing_is_left().await;
    drop(client);
    eventually(SOON, "it ends with its client", async || {
        (pipes(&cluster, leader).await == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_acquire_leaves_nothing_and_its_pipe_goes_on() {
    let cluster = Cluster::start(1).await;
    let client = client(cluster.url(0), Protocol::Pipe).await;
    let grant = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
    let impatient = timeout(Duration::from_millis(300), client.acquire(&gate(), SOON)).await;
    assert!(impatient.is_err(), "it waits");
    until_waiters(&cluster.api, "gate", 0).await;
    assert!(!grant.is_lost());
    grant.release().await.expect("released");
    // At many moments, before and after it may have been granted.
    for micros in (0..20_000).step_by(400) {
        let _ = timeout(Duration::from_micros(micros), client.acquire(&gate(), SOON)).await;
    }
    cluster.nothing_is_left().await;
    assert_eq!(pipes(&cluster, 0).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_found_again_under_the_same_id() {
    let cluster = Cluster::start(1).await;
    let proxy = Proxy::to(&cluster.url(0)).await;
    let client = client(proxy.url(), Protocol::Pipe).await;
    // The session, and its pipe, are there before anything goes wrong.
    let first = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
    first.release().await.expect("released");
    proxy.mute(true);
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.acquire(&gate(), Duration::from_secs(10)).await }
    });
    let token = holders_token(&cluster).await;
    assert!(!asking.is_finished());
    proxy.mute(false);
    proxy.cut();
    let grant = asking.await.expect("no panic").expect("granted");
    assert_eq!((grant.fencing_token(), grant.acquire_id()), (token, 2));
    grant.release().await.expect("released");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_that_the_node_does_not_know_is_asked_for_again() {
    let cluster = Cluster::start(1).await;
    let client = client(cluster.url(0), Protocol::Pipe).await;
    let first = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
    first.release().await.expect("released");
    cluster
        .arm(0, "lock.after-commit", json!({ "effect": "drop-reply" }))
        .await;
    let asking = tokio::spawn(async move { client.acquire(&gate(), Duration::from_secs(10)).await });
    let token = holders_token(&cluster).await;
    cluster.disarm(0, "lock.after-commit").await;
    let grant = asking.await.expect("no panic").expect("granted");
    assert_eq!((grant.fencing_token(), grant.acquire_id()), (token, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_that_breaks_under_a_waiter_is_replaced() {
    let cluster = Cluster::start(1).await;
    let holder = cluster.session().await;
    holder.granted(1, &["gate"], 0).await;
    let proxy = Proxy::to(&cluster.url(0)).await;
    let client = client(proxy.url(), Protocol::Pipe).await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.acquire(&gate(), Duration::from_secs(40)).await }
    });
    until_waiters(&cluster.api, "gate", 1).await;
    for pipes in 2..=4 {
        proxy.cut();
        eventually(SOON, "a new pipe", async || {
            (proxy.accepted() == pipes).then_some(())
        })
        .await;
        // The place of the broken one is given up, and taken again.
        until_waiters(&cluster.api, "gate", 1).await;
    }
    holder.release(1).await.expect(204);
    let grant = waiting.await.expect("no panic").expect("granted");
    grant.release().await.expect("released");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_pipes_is_asked_over_http() {
    let cluster = Cluster::start(1).await;
    let proxy = Proxy::to(&cluster.url(0)).await;
    proxy.speak_no_pipe();
    for protocol in [Protocol::Auto, Protocol::Http] {
        let client = client(proxy.url(), protocol).await;
        let grant = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
        let waiting = timeout(Duration::from_millis(200), client.acquire(&gate(), SOON)).await;
        assert!(waiting.is_err(), "it waits");
        until_waiters(&cluster.api, "gate", 0).await;
        grant.release().await.expect("released");
        cluster.nothing_is_left().await;
    }
    assert_eq!(pipes(&cluster, 0).await, 0);
    let only_pipes = client(proxy.url(), Protocol::Pipe).await;
    let refused = only_pipes.acquire(&gate(), Duration::ZERO).await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
}
