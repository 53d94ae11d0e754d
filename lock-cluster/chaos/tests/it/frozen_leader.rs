//! A leader that is stopped for twice the time to live, and goes on as if nothing had happened.

use std::time::Duration;

use lock_chaos::cluster::{Cluster, Setup};
use lock_client::{Grant, LockClient};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::lateness::Gauge;
use crate::raw::{SOON, client, until_waiters};

const TTL: Duration = Duration::from_secs(6);
/// Sessions that live through it, each holding something.
const BYSTANDERS: usize = 5;
/// Questions that lie in the leader's sockets while it is stopped.
const PENDING: usize = 8;
/// And such as it is asked afterwards.
const LATER: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_stopped_expires_nobody_and_does_not_answer_with_the_old_holder() {
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let gate = ["gate".to_owned()];
    let holder = client(&cluster, "old holder", TTL).await;
    let old = holder.acquire(&gate, SOON).await.unwrap();
    let mut bystanders: Vec<(LockClient, Grant)> = Vec::new();
    for number in 0..BYSTANDERS {
        let bystander = client(&cluster, "bystander", TTL).await;
        let grant = bystander.acquire(&[format!("own/{number}")], SOON).await.unwrap();
        bystanders.push((bystander, grant));
    }

    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    cluster.freeze(leader);
    let frozen = Instant::now();
    let mut pending = JoinSet::new();
    for _ in 0..PENDING {
        pending.spawn(who_holds(cluster.url(leader), SOON + TTL * 2));
    }
    let before = old.fencing_token();
    old.release().await.expect("released at the new leader");
    let next = client(&cluster, "new holder", TTL).await;
    let new = next
        .acquire(&gate, SOON)
        .await
        .expect("granted by the new leader");
    assert!(new.fencing_token() > before);
    sleep_until(frozen + TTL * 2).await;

    cluster.thaw(leader);
    let mut refused = 0;
    let mut check = |answer: Option<(StatusCode, Value)>| match answer {
        Some((StatusCode::OK, lock)) => {
            assert_eq!(
                lock["holder"]["fencing_token"],
                new.fencing_token(),
                "a stale answer: {lock}"
            );
        }
        // Not the leader, no leader yet, or no answer at all: everything but the old holder.
        _ => refused += 1,
    };
    while let Some(answer) = pending.join_next().await {
        check(answer.unwrap());
    }
    for _ in 0..LATER {
        check(who_holds(cluster.url(leader), Duration::from_secs(3)).await);
    }
    println!(
        "{refused} of {} questions were not answered with a holder",
        PENDING + LATER
    );

    // What it may have proposed has come through by then, or never will.
    let settled = Instant::now() + TTL / 3;
    sleep_until(settled).await;
    for (_, grant) in &bystanders {
        assert!(!grant.is_lost(), "{grant:?} was lost");
    }
    assert!(!new.is_lost());
    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    let status = cluster.status(leader).await.unwrap();
    assert_eq!(
        status.sessions,
        BYSTANDERS as u64 + 2,
        "no session was ended: {status:?}"
    );
}

/// A waiter cannot ask anybody else without giving up its place. With so long a TTL its keep-alive would find the new leader
/// only after twenty seconds, and its pipe be given up after ten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_at_a_leader_that_was_stopped_moves_on_long_before_its_keep_alive_is_due() {
    const PATIENT_TTL: Duration = Duration::from_secs(60);
    /// Two looks at a silent pipe, one try of a keep-alive at the node that is stopped, and as much again.
    const WITHIN: Duration = Duration::from_secs(7);
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let gate = ["gate".to_owned()];
    let holder = client(&cluster, "holder", TTL).await;
    let held = holder.acquire(&gate, SOON).await.unwrap();
    let waiter = client(&cluster, "waiter", PATIENT_TTL).await;
    let waiting = tokio::spawn(async move { waiter.acquire(&gate, Duration::from_secs(60)).await });
    until_waiters(&cluster, "gate", 1).await;

    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    let gauge = Gauge::start(&cluster).await;
    cluster.freeze(leader);
    let frozen = Instant::now();
    let before = held.fencing_token();
    held.release().await.expect("released at the new leader");
    let granted = timeout(SOON, waiting).await.expect("the waiter moves on");
    let granted = granted.unwrap().expect("granted by the new leader");
    let waited = frozen.elapsed();
    let late = gauge.late(&cluster).await.without_elections();
    late.assert_within(WITHIN, waited, "to be granted by another leader");
    assert_eq!(
        granted.fencing_token(),
        before + 1,
        "it had kept its place in line"
    );
    cluster.thaw(leader);
}

/// What one particular node says, whether it leads or not.
async fn who_holds(url: String, within: Duration) -> Option<(StatusCode, Value)> {
    let http = Client::builder().no_proxy().timeout(within).build().ok()?;
    let answer = http.get(format!("{url}/v1/locks/gate")).send().await.ok()?;
    Some((answer.status(), answer.json().await.ok()?))
}
