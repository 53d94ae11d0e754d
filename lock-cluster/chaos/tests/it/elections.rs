//! Elections, one after the other, faster than sessions live.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_chaos::cluster::{Cluster, Setup};
use lock_client::{Grant, LockClient};
use testkit::eventually;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::lateness::Gauge;
use crate::raw::{EXPIRY, RawSession, SOON, client};

const TTL: Duration = Duration::from_secs(5);
/// Two in each time to live, for ten of them.
const ELECTIONS: u32 = 20;
const LIVE: usize = 10;
/// The longest that cluster time stands still while a leader is there (`TICK_MS` of the node's `expiry.rs`, and the
/// `LOOK_EVERY` in which that is noticed).
const STAMPED_EVERY: Duration = Duration::from_millis(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_every_half_ttl_end_no_live_session_and_spare_no_dead_one() {
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let mut live: Vec<(LockClient, Grant)> = Vec::new();
    for number in 0..LIVE {
        let client = client(&cluster, "live", TTL).await;
        let grant = client.acquire(&[format!("own/{number}")], SOON).await.unwrap();
        live.push((client, grant));
    }
    let begun = Instant::now();
    let (dead, opened) = oneshot::channel();
    let mut dead = Some(dead);
    let mut leaderless = Vec::new();
    let elections = async {
        for election in 1..=ELECTIONS {
            let old = cluster.wait_for_leader(SOON).await.unwrap();
            if let Some(dead) = dead.take_if(|_| election == ELECTIONS / 4) {
                let gauge = Gauge::start(&cluster).await;
                // Opened, and never kept alive.
                let session = RawSession::open(&cluster, TTL).await;
                let _ = dead.send((session.opened, gauge));
            }
            let frozen = Instant::now();
            cluster.freeze(old);
            let new = cluster.wait_for_leader(SOON).await.expect("a new leader");
            leaderless.push((frozen, Instant::now()));
            assert_ne!(old, new);
            cluster.thaw(old);
            for (_, grant) in &live {
                assert!(!grant.is_lost(), "{grant:?} was lost in election {election}");
            }
            sleep_until(begun + TTL / 2 * election).await;
        }
    };
    let dying = async {
        let (opened, gauge) = opened.await.expect("it is opened on the way");
        let gone = gone(&cluster).await;
        (opened, gone, gauge.late(&cluster).await.without_elections())
    };
    let ((), (opened, gone, late)) = tokio::join!(elections, dying);

    // Without a leader no time passes for the cluster. That is what an election may cost, and each of them once. And it
    // takes time back to the last stamp: for one election that is within the bound, for more it is not.
    let lived_through: Vec<_> = leaderless
        .iter()
        .filter(|(from, _)| (opened..gone).contains(from))
        .collect();
    let without: Duration = lived_through.iter().map(|(from, to)| *to - *from).sum();
    let unstamped = STAMPED_EVERY * u32::try_from(lived_through.len()).unwrap().saturating_sub(1);
    let lived = gone - opened;
    println!(
        "{without:?} of them were without a leader, in {} elections",
        lived_through.len()
    );
    assert!(lived >= TTL, "it ended before its time: {lived:?}");
    late.assert_within(
        TTL + EXPIRY + without + unstamped,
        lived,
        "the life of the dead session",
    );

    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    let term = cluster.status(leader).await.unwrap().term;
    assert!(
        term > u64::from(ELECTIONS),
        "every time there was an election: term {term}"
    );
    for (_, grant) in live {
        assert!(!grant.is_lost());
        grant.release().await.expect("released");
    }
}

/// When some node has first applied that only those who live are left, after it had one more.
async fn gone(cluster: &Cluster) -> Instant {
    let mut had_more = BTreeSet::new();
    eventually(SOON * 2, "the dead session to be gone", async || {
        for at in cluster.all() {
            match cluster.status(at).await {
                Some(status) if status.sessions > LIVE as u64 => drop(had_more.insert(at)),
                Some(_) if had_more.contains(&at) => return Some(Instant::now()),
                _ => {}
            }
        }
        None
    })
    .await
}
