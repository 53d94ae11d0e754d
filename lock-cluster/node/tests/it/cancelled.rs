//! An acquire of the Rust client that is dropped at any of its await points, whose replies are lost, or whose process
//! dies: nothing of it is left, at once when the client lives, and after its time to live when it does not.

use std::time::Duration;

use futures::future::join_all;
use lock_client::{ClientConfig, LockClient};
use serde_json::json;
use testkit::{cut_after, eventually};
use tokio::runtime::Builder;

use crate::cluster::{Cluster, SOON};

/// More polls than an acquire takes.
const POLLS_MAX: usize = 200;
/// Of a client that lives: far longer than anything may be left.
const TTL: Duration = Duration::from_secs(60);

fn gate() -> [String; 1] {
    ["gate".to_owned()]
}

/// Cuts acquires after 0, 1, 2, … polls, until one is granted. Each leaves nothing, although the session lives on.
async fn cut_at_each_await(cluster: &Cluster, client: &LockClient) {
    for polls in 0..POLLS_MAX {
        if let Some(granted) = cut_after(polls, client.acquire(&gate(), SOON)).await {
            granted.expect("granted").release().await.expect("released");
            assert!(polls >= 2, "it waits for an answer at least");
            return;
        }
        cluster.nothing_is_left().await;
    }
    panic!("it is not granted within {POLLS_MAX} polls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_is_dropped_at_any_await_leaves_nothing() {
    let cluster = Cluster::start(3).await;
    // Opens its session on the way, and that is cut as well.
    let client = cluster.client("cut", TTL).await;
    cut_at_each_await(&cluster, &client).await;
    // And with a session that is there.
    cut_at_each_await(&cluster, &client).await;
    // Two acquires that were cut while they opened one may have opened one each; only the last is kept.
    eventually(SOON, "one session", async || {
        (cluster.counts().await == (1, 0, 0)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_is_dropped_while_replies_are_lost_leaves_nothing() {
    let cluster = Cluster::start(3).await;
    let client = cluster.client("cut, in doubt", TTL).await;
    for at in 0..3 {
        let effect = json!({ "effect": "drop-reply", "percent": 50, "seed": 11 });
        cluster.arm(at, "lock.after-commit", effect).await;
    }
    cut_at_each_await(&cluster, &client).await;
    for at in 0..3 {
        cluster.disarm(at, "lock.after-commit").await;
    }
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_dies_at_any_await_leaves_nothing_behind_its_time_to_live() {
    const CLIENTS: usize = 12;
    let cluster = Cluster::start(3).await;
    // Commits are answered late, so that some die between the commit and its reply.
    for at in 0..3 {
        let effect = json!({ "effect": "delay=50ms" });
        cluster.arm(at, "lock.after-commit", effect).await;
    }
    let urls = cluster.urls();
    let dying = (0..CLIENTS).map(|polls| {
        let urls = urls.clone();
        // A runtime of its own is as much of a process as a test can kill: its tasks end where they stand.
        tokio::task::spawn_blocking(move || {
            let process = Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            process.block_on(async {
                let mut config = ClientConfig::new(urls);
                config.ttl = Duration::from_secs(1);
                let client = LockClient::connect(config).await.expect("a client");
                let granted = cut_after(polls, client.acquire(&gate(), SOON)).await;
                // Neither released nor closed.
                std::mem::forget((granted, client));
            });
            process.shutdown_background();
        })
    });
    for died in join_all(dying).await {
        died.expect("no panic");
    }
    eventually(SOON, "no session, no lock and no waiter", async || {
        (cluster.counts().await == (0, 0, 0)).then_some(())
    })
    .await;
}
