//! Whether names that nobody wants any more leave anything behind: in memory, or in the snapshots.
//!
//! Before and after are looked at in the same way: at rest, and after each member has taken a snapshot of the state at
//! rest. A snapshot from the middle of the load would also hold the answers that the cluster must remember until its
//! clients have acknowledged them. Snapshots are taken after a number of log entries, so some entries that leave
//! nothing behind are made for it: a session is opened and closed, again and again.
//!
//! Memory before is that of a cluster that has worked for a while (`--warm-up-names`): an empty process has none of
//! its buffers yet, above all the log's, which has room for 4 MiB of entries. The way between is in the report as
//! well, so that a leak can be told from a buffer that fills.

use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use lock_client::LockClient;
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::args::NamesArgs;
use crate::cluster::{self, Cluster, Kind};
use crate::crowd;

/// Clients, each with a session and a connection, among whom the names are dealt out.
const CLIENTS: u32 = 8;
/// Names that are held at the same time.
const IN_FLIGHT: usize = 256;
/// Entries made in one step towards the next snapshot.
const CALM_STEP: usize = 500;
/// How long the next snapshot is waited for.
const CALM_WITHIN: Duration = Duration::from_secs(120);
/// How many sessions are opened and closed at a time meanwhile. Few: what is made together goes into one entry.
const CALM_IN_FLIGHT: usize = 2;
/// Names between two lines of progress.
const PROGRESS: u64 = 100_000;
/// How long an acquire waits.
const WAIT: Duration = Duration::from_secs(20);
/// Rest before memory is looked at: more than a keep-alive, with which the cluster is told what it may forget.
const REST: Duration = Duration::from_secs(6);

/// Where a member tells how far its snapshot goes.
const SNAPSHOT_INDEX: &str = "raft_snapshot_index";

/// What the members take up.
#[derive(Debug)]
struct Taken {
    resident: Vec<u64>,
    snapshots: Vec<u64>,
}

/// Warms up, looks, runs through the names, looks again.
pub(crate) async fn run(args: &NamesArgs) -> anyhow::Result<()> {
    let program = cluster::lock_node_program(args.cluster.lock_node.as_deref())?;
    let dir = crate::data_dir(&args.cluster)?;
    let mut cluster = Cluster::start(Kind::LockNode, &program, dir.path()).await?;
    cluster.ready().await?;
    let ttl = args.ttl.ttl();
    let clients = crowd::open(cluster.urls(), ttl, 0..CLIENTS, "names").await?;

    through(&clients, "warm-up", 0..args.warm_up_names).await?;
    let before = at_rest(&mut cluster).await?;
    eprintln!("after {} names of warm-up: {}", args.warm_up_names, before.text());

    let begun = Instant::now();
    let mut done = 0;
    let mut trend = Vec::new();
    while done < args.names {
        let next = (done + PROGRESS).min(args.names);
        through(&clients, "name", done..next).await?;
        done = next;
        let largest = cluster.resident_bytes()?.into_iter().max().unwrap_or_default();
        trend.push(largest);
        eprintln!(
            "{done} names, {:.0} cycles/s, memory {:.1} MiB",
            done as f64 / begun.elapsed().as_secs_f64(),
            mib(largest)
        );
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = at_rest(&mut cluster).await?;

    println!("{} names acquired and released in {seconds:.0} s", args.names);
    println!("  before   {}", before.text());
    println!("  after    {}", after.text());
    let growth = |before: &[u64], after: &[u64]| -> Vec<f64> {
        let percent = |(before, after): (&u64, &u64)| (*after as f64 / *before as f64 - 1.0) * 100.0;
        before.iter().zip(after).map(percent).collect()
    };
    let (resident, snapshots) = (
        growth(&before.resident, &after.resident),
        growth(&before.snapshots, &after.snapshots),
    );
    let list = |values: &[f64]| -> String {
        let texts: Vec<String> = values.iter().map(|percent| format!("{percent:+.1} %")).collect();
        texts.join("  ")
    };
    println!("  memory   {}", list(&resident));
    println!("  snapshot {}", list(&snapshots));
    let report = json!({
        "names": args.names,
        "warm_up_names": args.warm_up_names,
        "seconds": seconds,
        "resident_bytes": { "before": before.resident, "after": after.resident },
        "snapshot_bytes": { "before": before.snapshots, "after": after.snapshots },
        "largest_resident_bytes_on_the_way": trend,
        "resident_growth_percent": resident,
        "snapshot_growth_percent": snapshots,
    });
    crate::report::write_json(args.cluster.json.as_deref(), &report)
}

/// Acquires and releases each of these names once, many at a time.
async fn through(clients: &[LockClient], kind: &str, range: std::ops::Range<u64>) -> anyhow::Result<()> {
    stream::iter(range)
        .map(|at| {
            let client = clients[at as usize % clients.len()].clone();
            let name = [format!("{kind}/{at}")];
            async move {
                let grant = client.acquire(&name, WAIT).await?;
                grant
                    .release()
                    .await
                    .with_context(|| format!("releasing {}", name[0]))
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

/// Waits for rest and for a snapshot of it on each member, and looks.
async fn at_rest(cluster: &mut Cluster) -> anyhow::Result<Taken> {
    sleep(REST).await;
    let leader = cluster.ready().await?;
    let sessions = format!("{}/v1/sessions", cluster.urls()[leader]);
    let http = reqwest::Client::builder().no_proxy().build()?;
    let at = cluster.each(SNAPSHOT_INDEX).await?;
    let deadline = Instant::now() + CALM_WITHIN;
    loop {
        let now = cluster.each(SNAPSHOT_INDEX).await?;
        if now.iter().zip(&at).all(|(now, before)| now > before) {
            break;
        }
        anyhow::ensure!(Instant::now() < deadline, "no snapshot within {CALM_WITHIN:?}");
        stream::iter(0..CALM_STEP)
            .map(|_| open_and_close(&http, &sessions))
            .buffer_unordered(CALM_IN_FLIGHT)
            .try_collect::<()>()
            .await?;
    }
    Ok(Taken {
        resident: cluster.resident_bytes()?,
        snapshots: cluster.snapshot_bytes()?,
    })
}

/// Two log entries that leave nothing behind.
async fn open_and_close(http: &reqwest::Client, sessions: &str) -> anyhow::Result<()> {
    let session = format!("{sessions}/{}", Uuid::new_v4());
    let body = json!({ "ttl_ms": 10_000, "label": "calm" });
    http.put(&session).json(&body).send().await?.error_for_status()?;
    http.delete(&session).send().await?.error_for_status()?;
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Taken {
    fn text(&self) -> String {
        let resident: Vec<String> = self
            .resident
            .iter()
            .map(|bytes| format!("{:.1}", mib(*bytes)))
            .collect();
        let snapshots: Vec<String> = self.snapshots.iter().map(u64::to_string).collect();
        format!(
            "memory {} MiB, snapshots {} bytes",
            resident.join(" "),
            snapshots.join(" ")
        )
    }
}
