//! `lock-bench`: how fast the lock cluster is, beside etcd, on the same disk in the same minutes.
//!
//! ```text
//! lock-bench --rounds 5 --clients 1,16,64,256 --json bench.json --svg bench.svg
//! lock-bench sessions        what 5,000 live sessions cost the leader, and how soon they are gone
//! lock-bench names           whether a million names leave anything behind
//! lock-bench steady          ten minutes of full load without an election
//! ```
//!
//! # What is compared
//!
//! A *cycle* is one acquire and one release. Three [`Target`](locker::Target)s go through the same cycles:
//!
//! | target | acquire | release |
//! |---|---|---|
//! | `lock-node` | the public `lock-client` | the same |
//! | `etcd-lock` | `Lock` of etcd's own lock service | `Unlock` |
//! | `etcd-txn` | the recipe of etcd's Go package: a transaction that puts the own key if it is new and gets the oldest; who is not the oldest watches for the deletion of the one before | deletion of the own key |
//!
//! in two cases: *own*, each client on a lock name of its own, and *one*, all of them waiting for the same.
//!
//! # What makes it fair
//!
//! * Both clusters are three processes with default settings on loopback, their data in one folder on one disk, and
//!   both are up all the time. Rounds alternate, and the order of the targets turns with each round, so that a noisy
//!   minute hits all of them.
//! * The shape is the same on both sides: a session (a lease) and a connection per client, kept alive all along; or
//!   one of each for all clients, with `--shared`.
//! * etcd's clients talk to etcd's leader, which is its fastest way; ours find theirs by themselves.
//! * Durability is counted, not believed: the report has each cluster's fsyncs per second, from its own metrics.
//! * Server time is what the kernel has charged the three processes with. The clients' own cost is not in it, but
//!   they share the machine, so a heavy client slows its target down: as it would in real life.
//!
//! What it leaves out: networks. On loopback the disk and the processor are all that there is.
//!
//! # How it is made
//!
//! | module | what it does |
//! |---|---|
//! | [`args`] | the flags, and what `--help` teaches |
//! | [`server`], [`proc`] | a child process, and what the kernel knows about it |
//! | [`cluster`] | three of them that are a cluster |
//! | [`etcd`] | the few calls of etcd that a lock needs, without generated code |
//! | [`locker`] | one client of one target |
//! | [`load`] | many of them for a while, measured |
//! | [`figures`] | pure: percentiles, medians, ratios |
//! | [`compare`] | rounds |
//! | [`failover`] | the leader is killed: how long until the next grant? |
//! | [`crowd`] | clients of lock-node that go on until they are stopped |
//! | [`sessions`], [`names`], [`steady`] | the measurements of lock-node alone |
//! | [`report`] | the tables, the JSON, the plot |

mod args;
mod cluster;
mod compare;
mod crowd;
mod etcd;
mod failover;
mod figures;
mod load;
mod locker;
mod names;
mod proc;
mod report;
mod server;
mod sessions;
mod steady;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use service_kit::{limits, shutdown};
use tempfile::TempDir;

use args::{Args, ClusterArgs, Command};

/// 128 + SIGINT, as shells count.
const EXIT_INTERRUPTED: u8 = 130;

/// No logs are written: what the clients would warn of, sessions that die and nodes that do not answer, is what is
/// measured here.
#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    limits::raise_nofile();
    match until_interrupted(args).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lock-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Dropping the measurement ends its child processes and removes their data.
async fn until_interrupted(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = shutdown::on_signal()?;
    tokio::select! {
        done = run(args) => done.map(|()| ExitCode::SUCCESS),
        () = interrupted.cancelled() => Ok(ExitCode::from(EXIT_INTERRUPTED)),
    }
}

/// A folder for one measurement, gone when it is dropped.
fn data_dir(args: &ClusterArgs) -> anyhow::Result<TempDir> {
    let parent = args.data_dir.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new()
        .prefix("lock-bench-")
        .tempdir_in(&parent)
        .with_context(|| format!("making a folder in {}", parent.display()))
}

async fn run(args: Args) -> anyhow::Result<()> {
    match &args.command {
        None => compare::run(&args.compare).await,
        Some(Command::Sessions(args)) => sessions::run(args).await,
        Some(Command::Names(args)) => names::run(args).await,
        Some(Command::Steady(args)) => steady::run(args).await,
    }
}
