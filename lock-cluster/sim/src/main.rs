//! `lock-sim`: runs seeds, and shows what one of them did.

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand};
use lock_sim::{Plan, Plant, Report, run};

/// Simulates the lock cluster, with everything that can go wrong, and checks what its clients see.
///
/// A run follows from its seed, bit for bit: on any machine, as often as you like. Members crash and lose what they
/// had not flushed, stop and go on, are cut off in one direction or both; messages are lost, late, doubled; disks are
/// slow; clocks drift; clients die. Then all is mended, and the cluster has to become well.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Examples:
  lock-sim run                              seeds 1 to 100, three nodes
  lock-sim run --seeds 1..5000 --nodes 5    thousands, on five
  lock-sim replay --seed 42                 one seed, twice, and compare
  lock-sim replay --seed 42 --trace         everything that happened in it, line by line
  lock-sim run --plant expire-regardless    with a bug in, which is to be found

The exit code is 0 if nothing was found, 1 if something was; what was found names its seed.
A seed means the same run only with the same flags and the same version of the program."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run many seeds and say which of them found something.
    Run {
        /// From and to, both included.
        #[arg(long, env = "LOCK_SIM_SEEDS", value_name = "FROM..TO", default_value = "1..100", value_parser = seeds)]
        seeds: RangeInclusive<u64>,
        /// Seeds run side by side [default: one for each core].
        #[arg(long, env = "LOCK_SIM_THREADS")]
        threads: Option<usize>,
        #[command(flatten)]
        size: Size,
    },
    /// Run one seed again, and check that it is the same every time.
    Replay {
        /// Which.
        #[arg(long, env = "LOCK_SIM_SEED")]
        seed: u64,
        /// Print a line for everything that happens: messages, disks, faults, entries, what clients believe.
        #[arg(long, env = "LOCK_SIM_TRACE", value_parser = clap::builder::FalseyValueParser::new())]
        trace: bool,
        #[command(flatten)]
        size: Size,
    },
}

#[derive(Clone, Debug, Args)]
struct Size {
    /// Members of the cluster.
    #[arg(long, env = "LOCK_SIM_NODES", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=7))]
    nodes: u64,
    /// Clients, each with two attempts at a time.
    #[arg(long, env = "LOCK_SIM_CLIENTS", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=50))]
    clients: u64,
    /// How long things are broken, in virtual seconds. Mending and the last checks take about twenty more.
    #[arg(long, env = "LOCK_SIM_VIRTUAL_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    virtual_seconds: u64,
    /// A bug to put in, and to see found.
    #[arg(long, env = "LOCK_SIM_PLANT")]
    plant: Option<Plant>,
}

impl Size {
    fn plan(&self, seed: u64) -> Plan {
        Plan {
            nodes: self.nodes,
            clients: self.clients,
            virtual_seconds: self.virtual_seconds,
            plant: self.plant,
            ..Plan::new(seed)
        }
    }
}

fn seeds(text: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let number = |text: &str| text.parse::<u64>().context("a seed is a number");
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (number(from)?, number(to.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    ensure!(from <= to, "there is no seed from {from} to {to}");
    Ok(from..=to)
}

fn main() -> ExitCode {
    let found = match Cli::parse().command {
        Command::Run { seeds, threads, size } => run_all(seeds, threads, &size),
        Command::Replay { seed, trace, size } => replay(seed, trace, &size),
    };
    ExitCode::from(u8::from(found))
}

/// Whether any of them found something.
fn run_all(seeds: RangeInclusive<u64>, threads: Option<usize>, size: &Size) -> bool {
    let began = Instant::now();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(*seeds.start());
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.unwrap_or_else(cores).max(1) {
            scope.spawn(|| {
                while let Some(seed) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| seeds.contains(seed))
                {
                    let plan = size.plan(seed);
                    let report = run(&plan);
                    if !report.violations.is_empty() {
                        print_found(&plan, &report);
                    }
                    reports.lock().expect("nobody panics with it").push(report);
                }
            });
        }
    });
    let reports = reports.into_inner().expect("nobody panics with it");
    let found = reports
        .iter()
        .filter(|report| !report.violations.is_empty())
        .count();
    let sum = |number: fn(&Report) -> u64| reports.iter().map(number).sum::<u64>();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds in {seconds:.1} s, {found} found something\n\
         {} grants, {} messages ({} lost), {} entries applied, {} snapshots installed, {} node crashes ({} writes lost), \
         {} pauses, {} client crashes, {} pieces of history explained ({} passed over)",
        reports.len(),
        sum(|report| report.counts.grants),
        sum(|report| report.counts.messages),
        sum(|report| report.counts.lost_messages),
        sum(|report| report.counts.applied),
        sum(|report| report.counts.restored),
        sum(|report| report.counts.crashes),
        sum(|report| report.counts.lost_writes),
        sum(|report| report.counts.pauses),
        sum(|report| report.counts.client_crashes),
        sum(|report| report.counts.searched),
        sum(|report| report.counts.passed_over),
    );
    found > 0
}

fn replay(seed: u64, trace: bool, size: &Size) -> bool {
    let plan = Plan {
        readable: trace,
        ..size.plan(seed)
    };
    let report = run(&plan);
    report.lines.iter().for_each(|line| println!("{line}"));
    let again = run(&size.plan(seed));
    let same = (report.hash, report.events) == (again.hash, again.events);
    println!(
        "seed {seed}: {} events, trace hash {:016x}",
        report.events, report.hash
    );
    println!("{:?}", report.counts);
    if !same {
        println!(
            "NOT REPEATABLE: the second run had {} events, hash {:016x}",
            again.events, again.hash
        );
    }
    if !report.violations.is_empty() {
        print_found(&plan, &report);
    }
    !same || !report.violations.is_empty()
}

fn print_found(plan: &Plan, report: &Report) {
    println!("seed {} found {}:", report.seed, report.violations.len());
    for violation in report.violations.iter().take(5) {
        println!("  {violation}");
    }
    println!("  again: {}", plan.replay_command());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_has_an_environment_variable() {
        testkit::check_flags(Cli::command());
    }
}
