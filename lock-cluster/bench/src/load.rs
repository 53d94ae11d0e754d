//! Many clients that acquire and release for a while, and what that cost.

use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::cluster::Cluster;
use crate::figures::percentile;
use crate::locker::{Address, Case, Locker, Target};
use crate::proc::CpuTime;

/// Clients that connect at the same time.
pub(crate) const CONNECTING: usize = 32;
/// The share of cycles that may fail before the figures of a round mean nothing.
const FAILED_MAX: f64 = 0.01;

/// No line of waiters here is so long that a cycle takes longer; if it does, something is stuck.
const CYCLE_WITHIN: Duration = Duration::from_secs(30);
/// What fails at once must not become a busy loop that starves the others.
pub(crate) const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(5);

/// How long a measurement takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Load that does not count.
    pub(crate) warm_up: Duration,
    /// Load that does.
    pub(crate) measured: Duration,
}

/// One place in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) case: Case,
    pub(crate) clients: u32,
    pub(crate) target: Target,
}

/// What one round at one point brought.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// Acquires with their releases, per second.
    pub(crate) cycles_per_s: f64,
    /// Half of the cycles took no longer.
    pub(crate) p50_ms: f64,
    /// All but one in a hundred took no longer.
    pub(crate) p99_ms: f64,
    /// Processor time of the three servers for each cycle.
    pub(crate) cpu_us_per_cycle: f64,
    /// Processor time of all clients for each cycle.
    pub(crate) client_cpu_us_per_cycle: f64,
    /// Fsyncs of the three servers' logs.
    pub(crate) syncs_per_s: f64,
    /// Resident memory of the largest server.
    pub(crate) rss_mib: f64,
    /// Cycles that ended in an error.
    pub(crate) failed: u64,
}

/// Runs one round at one point.
pub(crate) async fn run(
    point: Point,
    shared: bool,
    cluster: &mut Cluster,
    ttl: Duration,
    window: Window,
) -> anyhow::Result<Sample> {
    let leader = cluster.ready().await?;
    let address = Address {
        urls: cluster.urls().to_vec(),
        leader: cluster.urls()[leader].clone(),
        ttl,
    };
    // On one name a session of etcd can only wait once, so there is nothing to share.
    let shared = shared && point.case == Case::Own;
    let lockers = connect(point, shared, &address).await?;

    let begin = Instant::now() + window.warm_up;
    let end = begin + window.measured;
    let mut clients = JoinSet::new();
    for (at, locker) in lockers.into_iter().enumerate() {
        let name = match point.case {
            Case::Own => format!("bench/{}/{at}", point.target.name()),
            Case::One => format!("bench/{}", point.target.name()),
        };
        clients.spawn(cycle_until(end, begin, locker, name));
    }

    sleep_until(begin).await;
    let (before, clients_before) = (cluster.usage().await?, own_cpu()?);
    let begun = Instant::now();
    sleep_until(end).await;
    let (after, clients_after) = (cluster.usage().await?, own_cpu()?);
    let seconds = begun.elapsed().as_secs_f64();
    let resident = cluster.resident_bytes()?.into_iter().max().unwrap_or_default();

    let mut took_ms = Vec::new();
    let mut failed = 0;
    let mut first_error = None;
    let mut lockers = Vec::new();
    while let Some(client) = clients.join_next().await {
        let client = client.context("a client stopped")?;
        took_ms.extend(client.took_ms);
        failed += client.failed;
        first_error = first_error.or(client.error);
        lockers.push(client.locker);
    }
    close(lockers).await?;

    let cycles = took_ms.len() as f64;
    if failed as f64 > FAILED_MAX * cycles {
        let error = first_error.unwrap_or_else(|| anyhow::anyhow!("no cycle was finished in time"));
        return Err(error.context(format!("{failed} cycles failed, {cycles} did not")));
    }
    anyhow::ensure!(cycles > 0.0, "no cycle was finished within {:?}", window.measured);
    took_ms.sort_by(f64::total_cmp);
    Ok(Sample {
        cycles_per_s: cycles / window.measured.as_secs_f64(),
        p50_ms: percentile(&took_ms, 0.5),
        p99_ms: percentile(&took_ms, 0.99),
        cpu_us_per_cycle: (after.cpu - before.cpu).us() / cycles,
        client_cpu_us_per_cycle: (clients_after - clients_before).us() / cycles,
        syncs_per_s: (after.syncs - before.syncs) / seconds,
        rss_mib: resident as f64 / f64::from(1 << 20),
        failed,
    })
}

async fn connect(point: Point, shared: bool, address: &Address) -> anyhow::Result<Vec<Locker>> {
    if shared {
        let first = Locker::open(point.target, address).await?;
        let mut lockers: Vec<Locker> = (1..point.clients).map(|_| first.share()).collect();
        lockers.push(first);
        return Ok(lockers);
    }
    stream::iter(0..point.clients)
        .map(|_| Locker::open(point.target, address))
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await
        .with_context(|| format!("connecting {} clients", point.clients))
}

async fn close(lockers: Vec<Locker>) -> anyhow::Result<()> {
    stream::iter(lockers)
        .map(Locker::close)
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await
        .context("closing the clients")
}

/// What one client did.
struct Client {
    locker: Locker,
    took_ms: Vec<f64>,
    failed: u64,
    error: Option<anyhow::Error>,
}

/// Cycles until `end`. Those that end in the measured time count, whenever they began: as many begin before it as
/// end after it.
async fn cycle_until(end: Instant, begin: Instant, locker: Locker, name: String) -> Client {
    let mut client = Client {
        locker,
        took_ms: Vec::new(),
        failed: 0,
        error: None,
    };
    let name = [name];
    loop {
        let started = Instant::now();
        if started >= end {
            return client;
        }
        let outcome = match timeout(CYCLE_WITHIN, client.locker.cycle(&name)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(anyhow::anyhow!("a cycle took longer than {CYCLE_WITHIN:?}")),
        };
        let ended = Instant::now();
        match outcome {
            Err(error) => {
                client.failed += 1;
                client.error = Some(error);
                sleep(PAUSE_AFTER_FAILURE).await;
            }
            Ok(()) if (begin..end).contains(&ended) => {
                client.took_ms.push((ended - started).as_secs_f64() * 1e3);
            }
            Ok(()) => {}
        }
    }
}

fn own_cpu() -> anyhow::Result<CpuTime> {
    CpuTime::of(std::process::id())
}
