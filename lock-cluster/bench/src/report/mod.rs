//! What a comparison brings: for the screen, as JSON, as a plot.
//!
//! [`Report`] *is* the JSON. A figure of a point is the median over its rounds; a ratio is taken within each round,
//! and its median, smallest and largest over the rounds are reported.

mod plot;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use service_kit::Machine;

use crate::args::CompareArgs;
use crate::cluster;
use crate::failover::Failovers;
use crate::figures::{Spread, median};
use crate::load::{Point, Sample};
use crate::locker::{Case, Target};
use crate::proc;

/// All of it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    setting: Setting,
    points: Vec<PointReport>,
    ratios: Vec<Ratio>,
    /// From each kill of lock-node's leader until the next grant.
    failover_ms: Vec<f64>,
    /// What went on meanwhile.
    failover: Failovers,
    /// The same of etcd, without other load.
    etcd_failover_ms: Vec<f64>,
}

/// What the figures depend on.
#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    machine: MachineReport,
    versions: Versions,
    shape: Shape,
    /// What was left out, and why.
    skipped: Option<String>,
}

#[derive(Debug, Serialize)]
struct MachineReport {
    #[serde(flatten)]
    machine: Machine,
    /// Of the folder with the clusters' data.
    file_system: String,
    /// How long a small write to it takes until it is durable, at rest.
    fsync_ms: f64,
}

#[derive(Debug, Serialize)]
struct Versions {
    lock_bench: String,
    /// `release` or `debug`: figures of a debug build mean nothing.
    build: String,
    lock_node: String,
    etcd: Option<String>,
}

#[derive(Debug, Serialize)]
struct Shape {
    members: u32,
    /// Whether all clients on own lock names share one session and one connection.
    shared: bool,
    ttl_seconds: u64,
    rounds: u32,
    measure_ms: u64,
    warm_up_ms: u64,
}

/// The rounds of one point.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) point: Point,
    pub(crate) rounds: Vec<Sample>,
}

#[derive(Debug, Serialize)]
struct PointReport {
    case: Case,
    clients: u32,
    target: Target,
    cycles_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us_per_cycle: f64,
    client_cpu_us_per_cycle: f64,
    syncs_per_s: f64,
    rss_mib: f64,
    failed: u64,
    rounds: Vec<Sample>,
}

/// How many times as many cycles per second lock-node made as another target in the same round.
#[derive(Debug, Serialize)]
struct Ratio {
    case: Case,
    clients: u32,
    to: Target,
    #[serde(flatten)]
    spread: Spread,
    /// The same of the 99th percentiles: below 1, lock-node's is the smaller.
    p99: Spread,
}

impl Setting {
    /// Describes the machine and the programs; measures the disk for a moment.
    pub(crate) fn new(
        args: &CompareArgs,
        dir: &Path,
        lock_node: &Path,
        etcd: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let build = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        Ok(Self {
            machine: MachineReport {
                machine: Machine::describe(),
                file_system: proc::file_system(dir),
                fsync_ms: proc::sync_ms(dir)?,
            },
            versions: Versions {
                lock_bench: env!("CARGO_PKG_VERSION").to_owned(),
                build: build.to_owned(),
                lock_node: cluster::version(lock_node)?,
                etcd: etcd.map(cluster::version).transpose()?,
            },
            shape: Shape {
                members: 3,
                shared: args.shared,
                ttl_seconds: args.ttl.ttl_seconds,
                rounds: args.rounds,
                measure_ms: args.measure_ms,
                warm_up_ms: args.warm_up_ms,
            },
            skipped: etcd.is_none().then(|| "no etcd found".to_owned()),
        })
    }
}

impl Report {
    /// Sums the rounds up.
    pub(crate) fn new(
        setting: Setting,
        measured: Vec<Measured>,
        failover: Failovers,
        of_etcd: Failovers,
    ) -> Self {
        let ratios = ratios(&measured);
        Self {
            setting,
            points: measured.into_iter().map(PointReport::from).collect(),
            ratios,
            failover_ms: failover.took_ms.clone(),
            failover,
            etcd_failover_ms: of_etcd.took_ms,
        }
    }

    /// The plot.
    pub(crate) fn to_svg(&self) -> anyhow::Result<String> {
        plot::draw(&self.points, &self.ratios)
    }
}

/// Writes a report to a file as indented JSON, if there is to be one.
pub(crate) fn write_json(file: Option<&Path>, report: &impl Serialize) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let text = serde_json::to_string_pretty(report)? + "\n";
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

impl From<Measured> for PointReport {
    fn from(Measured { point, rounds }: Measured) -> Self {
        let middle = |figure: fn(&Sample) -> f64| median(&figures(&rounds, figure));
        Self {
            case: point.case,
            clients: point.clients,
            target: point.target,
            cycles_per_s: middle(|round| round.cycles_per_s),
            p50_ms: middle(|round| round.p50_ms),
            p99_ms: middle(|round| round.p99_ms),
            cpu_us_per_cycle: middle(|round| round.cpu_us_per_cycle),
            client_cpu_us_per_cycle: middle(|round| round.client_cpu_us_per_cycle),
            syncs_per_s: middle(|round| round.syncs_per_s),
            rss_mib: middle(|round| round.rss_mib),
            failed: rounds.iter().map(|round| round.failed).sum(),
            rounds,
        }
    }
}

fn figures(rounds: &[Sample], figure: fn(&Sample) -> f64) -> Vec<f64> {
    rounds.iter().map(figure).collect()
}

/// Of lock-node to each of the others, wherever both were measured.
fn ratios(measured: &[Measured]) -> Vec<Ratio> {
    measured
        .iter()
        .filter(|other| other.point.target != Target::LockNode)
        .filter_map(|other| {
            let ours = Point {
                target: Target::LockNode,
                ..other.point
            };
            let ours = measured.iter().find(|measured| measured.point == ours)?;
            let spread =
                |figure| Spread::of_ratios(&figures(&ours.rounds, figure), &figures(&other.rounds, figure));
            Some(Ratio {
                case: other.point.case,
                clients: other.point.clients,
                to: other.point.target,
                spread: spread(|round| round.cycles_per_s)?,
                p99: spread(|round| round.p99_ms)?,
            })
        })
        .collect()
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MachineReport {
            machine,
            file_system,
            fsync_ms,
        } = &self.machine;
        writeln!(f, "{machine}; data on {file_system}, one fsync {fsync_ms:.2} ms")?;
        let Versions {
            build,
            lock_node,
            etcd,
            ..
        } = &self.versions;
        let etcd = etcd.as_deref().unwrap_or("not found");
        writeln!(f, "lock-node {lock_node} ({build}), etcd {etcd}")?;
        let shape = &self.shape;
        let per = if shape.shared {
            "one session and one connection for all clients on own names"
        } else {
            "a session and a connection per client"
        };
        writeln!(
            f,
            "{} members, {per}, TTL {} s; {} rounds of {} ms after {} ms of warm-up",
            shape.members, shape.ttl_seconds, shape.rounds, shape.measure_ms, shape.warm_up_ms
        )?;
        if self.versions.build == "debug" {
            writeln!(f, "A DEBUG BUILD: these figures mean nothing")?;
        }
        if file_system == "tmpfs" {
            writeln!(
                f,
                "NO DISK: an fsync to tmpfs does nothing; name a folder on a disk with --data-dir"
            )?;
        }
        Ok(())
    }
}
