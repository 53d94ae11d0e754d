//! Clients of lock-node that go on acquiring and releasing until they are told to stop, and that notice when their
//! session was lost.

use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use lock_client::{ClientConfig, LockClient};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::figures::percentile;
use crate::load::{CONNECTING, PAUSE_AFTER_FAILURE};

/// How long an acquire waits: as long as an election and more, so that a failover is no error.
const WAIT: Duration = Duration::from_secs(20);
/// How long the last cycles may take.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A running crowd. Dropped, it is gone without a word.
#[derive(Debug)]
pub(crate) struct Crowd {
    stop: CancellationToken,
    members: JoinSet<anyhow::Result<Tally>>,
}

/// What a crowd did.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Acquires with their releases.
    pub(crate) cycles: u64,
    /// Cycles that ended in an error.
    pub(crate) failed: u64,
    /// Clients that ended with another session than they began with.
    pub(crate) sessions_lost: u64,
    acquire_ms: Vec<f64>,
}

impl Crowd {
    /// Opens a session for each of so many clients, and lets them begin.
    pub(crate) async fn start(urls: &[String], ttl: Duration, clients: u32) -> anyhow::Result<Self> {
        let opened = open(urls, ttl, 0..clients, "crowd").await?;
        let stop = CancellationToken::new();
        let mut members = JoinSet::new();
        for (at, client) in opened.into_iter().enumerate() {
            members.spawn(cycle(client, format!("crowd/{at}"), stop.clone()));
        }
        Ok(Self { stop, members })
    }

    /// Lets everybody finish the cycle they are in.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Tally> {
        self.stop.cancel();
        let mut all = Tally::default();
        let finish = async {
            while let Some(member) = self.members.join_next().await {
                let tally = member.context("a client stopped")??;
                all.cycles += tally.cycles;
                all.failed += tally.failed;
                all.sessions_lost += tally.sessions_lost;
                all.acquire_ms.extend(tally.acquire_ms);
            }
            anyhow::Ok(())
        };
        timeout(STOP_WITHIN, finish)
            .await
            .context("clients do not end")??;
        all.acquire_ms.sort_by(f64::total_cmp);
        Ok(all)
    }
}

impl Tally {
    /// The time that this share of the acquires did not exceed.
    pub(crate) fn acquire_ms(&self, share: f64) -> f64 {
        percentile(&self.acquire_ms, share)
    }
}

/// Clients with a session each, opened by one cycle each.
pub(crate) async fn open(
    urls: &[String],
    ttl: Duration,
    range: std::ops::Range<u32>,
    label: &str,
) -> anyhow::Result<Vec<LockClient>> {
    let count = range.len();
    stream::iter(range)
        .map(|at| async move {
            let mut config = ClientConfig::new(urls);
            config.ttl = ttl;
            config.label = label.to_owned();
            let client = LockClient::connect(config).await?;
            let first = client.acquire(&[format!("{label}/{at}")], WAIT).await?;
            first.release().await?;
            anyhow::Ok(client)
        })
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await
        .with_context(|| format!("opening {count} sessions"))
}

async fn cycle(client: LockClient, name: String, stop: CancellationToken) -> anyhow::Result<Tally> {
    let first = client.session_id().context("a session was opened")?;
    let mut tally = Tally::default();
    let name = [name];
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let outcome = async {
            let grant = client.acquire(&name, WAIT).await?;
            tally.acquire_ms.push(begun.elapsed().as_secs_f64() * 1e3);
            grant.release().await
        };
        match outcome.await {
            Ok(()) => tally.cycles += 1,
            Err(_) => {
                tally.failed += 1;
                sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
    tally.sessions_lost = u64::from(client.session_id() != Some(first));
    client.close().await;
    Ok(tally)
}
