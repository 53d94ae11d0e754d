//! Whether names that nobody wants any more leave anything behind: in memory, or in the snapshots.
//!
//! The state before is taken under the same clients and after enough cycles for each member to have taken a
//! snapshot: an empty process would not yet have its buffers, and nothing to compare a snapshot with.

use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use lock_client::LockClient;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::args::NamesArgs;
use crate::cluster::{self, Cluster, Kind};
use crate::crowd;

/// Clients, each with a session and a connection, among whom the names are dealt out.
const CLIENTS: u32 = 8;
/// Names that are held at the same time.
const IN_FLIGHT: usize = 256;
/// Names of one step of the warm-up.
const WARM_UP_STEP: u64 = 5_000;
/// Names of the warm-up at which members that have no snapshot yet are not waited for any longer.
const WARM_UP_MAX: u64 = 1_000_000;
/// Names between two lines of progress.
const PROGRESS: u64 = 100_000;
/// How long an acquire waits.
const WAIT: Duration = Duration::from_secs(20);
/// Rest before memory is looked at: more than a keep-alive, with which the cluster is told what it may forget.
const REST: Duration = Duration::from_secs(6);

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
    let ttl = args.cluster.ttl();
    let clients = crowd::open(cluster.urls(), ttl, 0..CLIENTS, "names").await?;

    let mut warm_up = 0;
    while cluster.snapshot_bytes()?.contains(&0) && warm_up < WARM_UP_MAX {
        through(&clients, "warm-up", warm_up..warm_up + WARM_UP_STEP).await?;
        warm_up += WARM_UP_STEP;
    }
    let before = taken(&cluster).await?;
    eprintln!("after {warm_up} names of warm-up: {}", before.text());

    let begun = Instant::now();
    let mut done = 0;
    while done < args.names {
        let next = (done + PROGRESS).min(args.names);
        through(&clients, "name", done..next).await?;
        done = next;
        eprintln!(
            "{done} names, {:.0} cycles/s",
            done as f64 / begun.elapsed().as_secs_f64()
        );
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = taken(&cluster).await?;
    cluster.ready().await?;

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
        "warm_up_names": warm_up,
        "seconds": seconds,
        "resident_bytes": { "before": before.resident, "after": after.resident },
        "snapshot_bytes": { "before": before.snapshots, "after": after.snapshots },
        "resident_growth_percent": resident,
        "snapshot_growth_percent": snapshots,
    });
    crate::report::write_json(args.json.as_deref(), &report)
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

async fn taken(cluster: &Cluster) -> anyhow::Result<Taken> {
    sleep(REST).await;
    Ok(Taken {
        resident: cluster.resident_bytes()?,
        snapshots: cluster.snapshot_bytes()?,
    })
}

impl Taken {
    fn text(&self) -> String {
        let mib: Vec<String> = self
            .resident
            .iter()
            .map(|bytes| format!("{:.1}", *bytes as f64 / f64::from(1 << 20)))
            .collect();
        let snapshots: Vec<String> = self.snapshots.iter().map(u64::to_string).collect();
        format!(
            "memory {} MiB, snapshots {} bytes",
            mib.join(" "),
            snapshots.join(" ")
        )
    }
}
