//! The Rust client against a real cluster: what it holds, what it gives back, and when it says "lost".

use std::time::Duration;

use lock_client::{ClientConfig, LockClient, LockError};
use testkit::eventually;
use tokio::time::{Instant, timeout};

use crate::api::until_waiters;
use crate::cluster::{Cluster, SOON};

const TTL: Duration = Duration::from_secs(5);

fn gate() -> Vec<String> {
    vec!["gate".to_owned()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_given_back_by_release_and_by_drop() {
    let cluster = Cluster::start(3).await;
    let client = cluster.client("a client", TTL).await;
    assert_eq!(client.session_id(), None, "nothing is opened before it is needed");
    let first = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
    let other = cluster.client("another", TTL).await;
    assert_eq!(
        other.acquire(&gate(), Duration::ZERO).await.err(),
        Some(LockError::Held)
    );
    assert_eq!(
        other.acquire(&gate(), Duration::from_millis(200)).await.err(),
        Some(LockError::WaitTimeout)
    );
    let first_token = first.fencing_token();
    first.release().await.expect("released");
    let second = other.acquire(&gate(), Duration::ZERO).await.expect("free again");
    assert!(second.fencing_token() > first_token);
    drop(second);
    let third = client
        .acquire(&gate(), SOON)
        .await
        .expect("given back by the drop");
    drop(third);
    cluster.nothing_is_left().await;
    client.close().await;
    other.close().await;
    assert_eq!(cluster.counts().await.0, 0, "closing closes the session");
    assert!(matches!(
        client.acquire(&gate(), Duration::ZERO).await,
        Err(LockError::Unavailable { .. })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_acquire_leaves_no_holder_and_no_waiter() {
    let cluster = Cluster::start(3).await;
    let holder = cluster.client("a holder", TTL).await;
    let grant = holder.acquire(&gate(), Duration::ZERO).await.expect("granted");
    let client = cluster.client("impatient", TTL).await;
    // While it waits.
    assert!(
        timeout(Duration::from_millis(300), client.acquire(&gate(), SOON))
            .await
            .is_err()
    );
    until_waiters(&cluster.api, "gate", 0).await;
    grant.release().await.expect("released");
    // At many other moments, before and after it may have been granted.
    for micros in (0..20_000).step_by(400) {
        let _ = timeout(Duration::from_micros(micros), client.acquire(&gate(), SOON)).await;
    }
    cluster.nothing_is_left().await;
    let grant = holder.acquire(&gate(), Duration::ZERO).await.expect("free");
    grant.release().await.expect("released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_holder_hears_of_the_loss_before_anybody_else_is_granted() {
    let cluster = Cluster::start(3).await;
    let ttl = Duration::from_secs(1);
    let client = cluster.client("paused", ttl).await;
    let grant = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
    let heir = cluster.client("heir", TTL).await;
    let waiting = tokio::spawn(async move {
        let grant = heir.acquire(&gate(), SOON).await.expect("granted in the end");
        (Instant::now(), grant)
    });
    let pause = grant.pause_keep_alive();
    timeout(SOON, grant.lost()).await.expect("it is lost");
    let lost_at = Instant::now();
    assert!(grant.is_lost());
    let (granted_at, next) = waiting.await.expect("no panic");
    assert!(lost_at < granted_at);
    assert!(next.fencing_token() > grant.fencing_token());
    assert_eq!(grant.release().await, Err(LockError::SessionLost));
    drop(pause);
    // A lost session is replaced by the next acquire.
    next.release().await.expect("released");
    let again = client
        .acquire(&gate(), SOON)
        .await
        .expect("a new session holds it");
    again.release().await.expect("released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_shorter_than_the_ttl_loses_nothing() {
    let cluster = Cluster::start(1).await;
    let ttl = Duration::from_secs(2);
    let client = cluster.client("paused", ttl).await;
    let grant = client.acquire(&gate(), Duration::ZERO).await.expect("granted");
    let pause = client.pause_keep_alive().expect("a session is open");
    assert!(timeout(ttl / 2, grant.lost()).await.is_err());
    drop(pause);
    assert!(
        timeout(ttl * 2, grant.lost()).await.is_err(),
        "it is kept alive again"
    );
    grant.release().await.expect("released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_outgrows_the_attempts_of_one_session() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client("busy", TTL).await;
    // Held all the time, so that nothing behind it can be acknowledged.
    let held = client
        .acquire(&["held".to_owned()], Duration::ZERO)
        .await
        .expect("granted");
    let mut workers = Vec::new();
    for worker in 0..16 {
        let client = client.clone();
        workers.push(tokio::spawn(async move {
            let names = [format!("own/{worker}")];
            for _ in 0..100 {
                let grant = client.acquire(&names, SOON).await.expect("granted");
                grant.release().await.expect("released");
            }
        }));
    }
    for worker in workers {
        worker.await.expect("no worker fails");
    }
    assert!(!held.is_lost());
    assert_ne!(
        client.session_id(),
        Some(held.session_id()),
        "later attempts are another session's"
    );
    held.release().await.expect("released");
    eventually(SOON, "the retired session to be closed", async || {
        (cluster.counts().await.0 == 1).then_some(())
    })
    .await;
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_acquires_of_one_client_are_granted_one_by_one() {
    let cluster = Cluster::start(3).await;
    let client = cluster.client("a crowd", TTL).await;
    let mut crowd = Vec::new();
    for _ in 0..500 {
        let client = client.clone();
        crowd.push(tokio::spawn(async move {
            let grant = client
                .acquire(&gate(), Duration::from_secs(55))
                .await
                .expect("granted");
            let token = grant.fencing_token();
            drop(grant);
            token
        }));
    }
    let mut tokens = Vec::new();
    for buyer in crowd {
        tokens.push(buyer.await.expect("no buyer fails"));
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 500);
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_cluster_an_acquire_ends_by_its_own_deadline() {
    let ports = testkit::free_ports(2);
    let urls = ports.iter().map(|port| format!("http://127.0.0.1:{port}"));
    let client = LockClient::connect(ClientConfig::new(urls))
        .await
        .expect("a client");
    let begun = Instant::now();
    let refused = client.acquire(&gate(), Duration::from_millis(100)).await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(6));
    assert!(
        LockClient::connect(ClientConfig::default()).await.is_err(),
        "a client needs a URL"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_cannot_be_are_invalid() {
    let cluster = Cluster::start(1).await;
    let client = cluster.client("wrong", TTL).await;
    for (names, wait) in [
        (vec![], Duration::ZERO),
        (vec![String::new()], Duration::ZERO),
        (vec!["x".repeat(257)], Duration::ZERO),
        (gate(), Duration::from_millis(60_001)),
    ] {
        let error = client.acquire(&names, wait).await.expect_err("refused");
        assert!(
            matches!(error, LockError::Invalid { ref slug, .. } if slug == "invalid-request"),
            "{error:?}"
        );
        assert!(!error.retryable());
    }
}
