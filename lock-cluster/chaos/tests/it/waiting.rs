//! Waiters whose own session dies in the queue.

use std::time::Duration;

use lock_chaos::cluster::{Cluster, Setup};
use reqwest::StatusCode;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::lateness::Gauge;
use crate::raw::{EXPIRY, RawSession, SOON, client, until_free, until_waiters};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_dies_hears_of_it_in_time_and_never_gets_the_lock() {
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let gate = ["gate".to_owned()];
    let holder = client(&cluster, "holder", Duration::from_secs(30)).await;
    let grant = holder.acquire(&gate, SOON).await.unwrap();

    let ttl = Duration::from_secs(2);
    let gauge = Gauge::start(&cluster).await;
    let waiter = RawSession::open(&cluster, ttl).await;
    let answered = timeout(SOON, waiter.acquire("gate", Duration::from_secs(30))).await;
    let lived = waiter.opened.elapsed();
    let late = gauge.late(&cluster).await;
    let (status, body) = answered.expect("a waiter that is dead is told so");
    assert_eq!(status, StatusCode::GONE, "{body}");
    assert!(lived >= ttl, "its session ended before its time: {lived:?}");
    late.assert_within(ttl + EXPIRY, lived, "to hear of the own death");
    assert!(!grant.is_lost(), "the holder still holds");

    let before = grant.fencing_token();
    grant.release().await.unwrap();
    until_free(&cluster, "gate", SOON).await;
    let (status, body) = waiter.acquire("gate", Duration::ZERO).await;
    assert_eq!(status, StatusCode::GONE, "{body}");
    let next = holder.acquire(&gate, SOON).await.unwrap();
    assert_eq!(
        next.fencing_token(),
        before + 1,
        "nobody was granted anything in between"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_nine_dead_waiters_hold_the_live_one_up_no_longer_than_one() {
    const DEAD: usize = 49;
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let gate = ["gate".to_owned()];
    let holder = client(&cluster, "holder", Duration::from_secs(30)).await;
    let grant = holder.acquire(&gate, SOON).await.unwrap();

    // Long enough to line up on a busy machine. Their connections stay open: they are frozen, not gone.
    let ttl = Duration::from_secs(10);
    let gauge = Gauge::start(&cluster).await;
    let mut dead = JoinSet::new();
    let mut last_opened = Instant::now();
    let leader = cluster.url(cluster.wait_for_leader(SOON).await.unwrap());
    for _ in 0..DEAD {
        let session = RawSession::open_at(leader.clone(), ttl).await;
        last_opened = session.opened;
        dead.spawn(async move { session.acquire("gate", Duration::from_secs(60)).await });
    }
    let live = client(&cluster, "live", SOON).await;
    let waiting = {
        let (live, gate) = (live.clone(), gate.clone());
        tokio::spawn(async move { live.acquire(&gate, Duration::from_secs(60)).await })
    };
    until_waiters(&cluster, "gate", DEAD + 1).await;

    grant.release().await.unwrap();
    let granted = timeout(SOON + ttl, waiting)
        .await
        .expect("the live one gets its turn");
    let waited = last_opened.elapsed();
    let late = gauge.late(&cluster).await;
    let granted = granted.unwrap().expect("granted");
    // Not a time to live each: those behind the first die while it does.
    late.assert_within(ttl + EXPIRY, waited, "the turn behind 49 who died");
    assert!(!granted.is_lost());
    let mut answers = Vec::new();
    while let Some(answer) = dead.join_next().await {
        answers.push(answer.unwrap().0);
    }
    let gone = answers
        .iter()
        .filter(|status| **status == StatusCode::GONE)
        .count();
    assert!(gone > DEAD / 2, "most of them died waiting: {answers:?}");
}
