//! The comparison: rounds over all points, the targets taking turns.

use anyhow::Context as _;

use crate::args::CompareArgs;
use crate::cluster::{self, Cluster, Kind};
use crate::failover::{self, Failovers};
use crate::load::{self, Point, Sample};
use crate::locker::{Case, Target};
use crate::report::{self, Measured, Report, Setting};

/// Starts the clusters, runs the rounds, reports.
pub(crate) async fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let lock_node = cluster::lock_node_program(args.cluster.lock_node.as_deref())?;
    let etcd = cluster::etcd_program(args.etcd.as_deref())?;
    if etcd.is_none() {
        eprintln!("skipped: no etcd found (it is looked for on the PATH; --etcd FILE names one)");
    }
    let dir = crate::data_dir(&args.cluster)?;
    let setting = Setting::new(args, dir.path(), &lock_node, etcd.as_deref())?;
    eprintln!("{setting}");

    let mut lock_nodes = Cluster::start(Kind::LockNode, &lock_node, dir.path()).await?;
    let mut etcds = match &etcd {
        Some(etcd) => Some(Cluster::start(Kind::Etcd, etcd, dir.path()).await?),
        None => None,
    };
    let targets: Vec<Target> = args
        .targets
        .iter()
        .copied()
        .filter(|target| target.kind() == Kind::LockNode || etcds.is_some())
        .collect();

    let mut points: Vec<Measured> = Vec::new();
    for round in 0..args.rounds {
        for (case, clients) in places(args) {
            for target in in_turn(&targets, round) {
                let cluster = match (target.kind(), &mut etcds) {
                    (Kind::Etcd, Some(etcds)) => etcds,
                    _ => &mut lock_nodes,
                };
                let point = Point {
                    case,
                    clients,
                    target,
                };
                let sample = load::run(point, args.shared, cluster, args.ttl.ttl(), args.window())
                    .await
                    .with_context(|| format!("{} clients, {}, {}", clients, case.name(), target.name()))?;
                progress(round, args.rounds, point, &sample);
                match points.iter_mut().find(|measured| measured.point == point) {
                    Some(measured) => measured.rounds.push(sample),
                    None => points.push(Measured {
                        point,
                        rounds: vec![sample],
                    }),
                }
            }
        }
    }
    let (ttl, times) = (args.ttl.ttl(), args.failovers);
    let ours = failover::run(Kind::LockNode, &mut lock_nodes, ttl, times, args.failover_clients).await?;
    let of_etcd = match &mut etcds {
        Some(etcds) => failover::run(Kind::Etcd, etcds, ttl, times, 0).await?,
        None => Failovers::default(),
    };
    drop((lock_nodes, etcds));

    let report = Report::new(setting, points, ours, of_etcd);
    println!("{report}");
    report::write_json(args.cluster.json.as_deref(), &report)?;
    if let Some(file) = &args.svg {
        std::fs::write(file, report.to_svg()?).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// The cases and numbers of clients, in the order of the report.
fn places(args: &CompareArgs) -> Vec<(Case, u32)> {
    let mut places = Vec::new();
    for case in &args.cases {
        match case {
            Case::Own => places.extend(args.clients.iter().map(|clients| (Case::Own, *clients))),
            Case::One => places.push((Case::One, args.waiters)),
        }
    }
    places
}

/// Another target is first in each round, so that none always runs right after the same other.
fn in_turn(targets: &[Target], round: u32) -> Vec<Target> {
    let mut targets = targets.to_vec();
    if !targets.is_empty() {
        let first = round as usize % targets.len();
        targets.rotate_left(first);
    }
    targets
}

fn progress(round: u32, rounds: u32, point: Point, sample: &Sample) {
    eprintln!(
        "round {}/{rounds}  {:>4} clients, {}  {:<9}  {:>7.0} cycles/s  p50 {:>7.2} ms  p99 {:>7.2} ms",
        round + 1,
        point.clients,
        point.case.name(),
        point.target.name(),
        sample.cycles_per_s,
        sample.p50_ms,
        sample.p99_ms,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_target_is_first_in_each_round() {
        let all = [Target::LockNode, Target::EtcdLock, Target::EtcdTxn];
        let firsts: Vec<Target> = (0..4).map(|round| in_turn(&all, round)[0]).collect();
        assert_eq!(
            firsts,
            [
                Target::LockNode,
                Target::EtcdLock,
                Target::EtcdTxn,
                Target::LockNode
            ]
        );
        assert!(in_turn(&[], 3).is_empty());
    }
}
