//! The flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::load::Window;
use crate::locker::{Case, Target};

const EXAMPLES: &str = "\
Examples:
  lock-bench                                    the whole comparison, about ten minutes
  lock-bench --rounds 1 --clients 64 --failovers 0
                                                a first impression in half a minute
  lock-bench --rounds 5 --clients 1,16,64,256 --json bench.json --svg bench.svg
  lock-bench sessions --sessions 5000           what live sessions cost, and how soon dead ones are gone
  lock-bench names --names 1000000              whether names leave anything behind
  lock-bench steady --minutes 10                full load: no election, no lost session
  lock-bench --shared                           one session and one connection for all clients, as a service has them

How to read it: a ratio above 1 says that lock-node made more cycles per second than the other in the same round.
Figures of a debug build, or of a machine that does something else, mean nothing: build with --release.";

/// Measures the lock cluster beside etcd: cycles of acquire and release, failover, processor time, memory.
#[derive(Debug, Parser)]
#[command(name = "lock-bench", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// What to do instead of the comparison
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) compare: CompareArgs,
}

/// Measurements of lock-node alone.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What live sessions cost the leader, and how soon they are gone when all die at once
    Sessions(SessionsArgs),
    /// Whether a million names leave anything behind in memory or snapshots
    Names(NamesArgs),
    /// Full load for minutes: counts false elections and lost sessions
    Steady(SteadyArgs),
}

/// Flags of `sessions`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    /// Sessions, each with a connection of its own (1 to 16000)
    #[arg(long, env = "LOCK_BENCH_SESSIONS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=16_000))]
    pub(crate) sessions: u32,

    /// Their time to live, in milliseconds (500 to 300000)
    #[arg(long, env = "LOCK_BENCH_TTL_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(500..=300_000))]
    pub(crate) ttl_ms: u64,

    /// How long the leader is watched while they live, in seconds (1 to 3600)
    #[arg(long, env = "LOCK_BENCH_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) seconds: u64,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// Flags of `names`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NamesArgs {
    /// Names before the first look at memory and snapshots; fewer, and the log's buffer is still filling
    #[arg(long, env = "LOCK_BENCH_WARM_UP_NAMES", default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) warm_up_names: u64,

    /// Different names, each acquired and released once
    #[arg(long, env = "LOCK_BENCH_NAMES", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) names: u64,

    #[command(flatten)]
    pub(crate) ttl: TtlArgs,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// Flags of `steady`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SteadyArgs {
    /// How long, in minutes
    #[arg(long, env = "LOCK_BENCH_MINUTES", default_value_t = 10.0)]
    pub(crate) minutes: f64,

    /// Clients on own lock names (1 to 4096)
    #[arg(long, env = "LOCK_BENCH_STEADY_CLIENTS", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) clients: u32,

    #[command(flatten)]
    pub(crate) ttl: TtlArgs,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// What every measurement needs: a cluster to start, and where to put the report.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// The lock-node program [default: the one beside this program]
    #[arg(long, env = "LOCK_BENCH_LOCK_NODE", value_name = "FILE")]
    pub(crate) lock_node: Option<PathBuf>,

    /// Folder on the disk to measure; a temporary one is made in it and removed again [default: the system's
    /// folder for temporary files]
    #[arg(long, env = "LOCK_BENCH_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// File for the report as JSON
    #[arg(long, env = "LOCK_BENCH_JSON", value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// How long sessions outlive their clients, where that is not what is measured.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TtlArgs {
    /// Time to live of every session and lease, in seconds (1 to 300)
    #[arg(long, env = "LOCK_BENCH_TTL_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub(crate) ttl_seconds: u64,
}

/// Flags of the comparison.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Rounds; the report has each and the medians (1 to 100)
    #[arg(long, env = "LOCK_BENCH_ROUNDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,

    /// Numbers of clients on own lock names, comma-separated (1 to 4096 each)
    #[arg(long, env = "LOCK_BENCH_CLIENTS", value_delimiter = ',', default_value = "1,16,64,256", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) clients: Vec<u32>,

    /// Number of clients on one lock name (2 to 4096)
    #[arg(long, env = "LOCK_BENCH_WAITERS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub(crate) waiters: u32,

    /// What to measure, comma-separated
    #[arg(
        long,
        env = "LOCK_BENCH_CASES",
        value_delimiter = ',',
        value_enum,
        default_value = "own,one"
    )]
    pub(crate) cases: Vec<Case>,

    /// What to measure it on, comma-separated
    #[arg(
        long,
        env = "LOCK_BENCH_TARGETS",
        value_delimiter = ',',
        value_enum,
        default_value = "lock-node,etcd-lock,etcd-txn"
    )]
    pub(crate) targets: Vec<Target>,

    /// Measured time of each point in each round, in milliseconds (100 to 600000)
    #[arg(long, env = "LOCK_BENCH_MEASURE_MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub(crate) measure_ms: u64,

    /// Time before it that does not count, in milliseconds (0 to 60000)
    #[arg(long, env = "LOCK_BENCH_WARM_UP_MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub(crate) warm_up_ms: u64,

    /// Kills of each cluster's leader after the rounds (0 to 1000)
    #[arg(long, env = "LOCK_BENCH_FAILOVERS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) failovers: u32,

    /// Clients that keep lock-node busy meanwhile (0 to 4096)
    #[arg(long, env = "LOCK_BENCH_FAILOVER_CLIENTS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub(crate) failover_clients: u32,

    /// One session and one connection for all clients on own lock names, instead of one of each per client
    #[arg(long, env = "LOCK_BENCH_SHARED", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) shared: bool,

    /// The etcd program; without one, etcd is left out [default: the one on the PATH]
    #[arg(long, env = "LOCK_BENCH_ETCD", value_name = "FILE")]
    pub(crate) etcd: Option<PathBuf>,

    /// File for the plot
    #[arg(long, env = "LOCK_BENCH_SVG", value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ttl: TtlArgs,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

impl TtlArgs {
    /// The time to live of sessions and leases.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_seconds)
    }
}

impl CompareArgs {
    /// How long each point is measured.
    pub(crate) fn window(&self) -> Window {
        Window {
            warm_up: Duration::from_millis(self.warm_up_ms),
            measured: Duration::from_millis(self.measure_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_has_an_environment_variable() {
        testkit::check_flags(Args::command());
    }
}
