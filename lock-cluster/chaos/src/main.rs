//! `lock-chaos`: runs real clusters under real faults, and checks what their clients saw.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use lock_chaos::cluster::Setup;
use lock_chaos::plan::{Plan, Plant};
use lock_chaos::{Report, run};
use lock_history::Moment;

/// Starts real lock-node processes, breaks everything around them, and checks what clients see.
///
/// Each run starts a cluster on loopback and some clients, kills and freezes nodes, cuts links, slows disks, loses
/// answers, kills and freezes clients; then everything is mended, and the cluster has to become well. What goes wrong
/// and when follows from the seed; what is in flight at that moment does not, so a run that found something may have
/// to be repeated.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Examples:
  lock-chaos run                              one run with seed 1, three nodes
  lock-chaos run --runs 50 --seed 1           fifty runs, seeds 1 to 50: about ten minutes
  lock-chaos run --nodes 5 --out found        five nodes; what a failed run leaves goes into ./found
  lock-chaos check found/seed-7/history.jsonl look again at what was seen

The exit code is 0 if nothing was found, 1 if something was or a run was void, 2 if it could not be run.
lock-node has to be built: cargo build -p lock-node -p lock-chaos"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run seeds, one after the other, and say which of them found something.
    Run(RunArgs),
    /// Check histories that were written by failed runs.
    Check {
        /// One moment a line, as JSON.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// How many seeds.
    #[arg(long, env = "LOCK_CHAOS_RUNS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// The first of them.
    #[arg(long, env = "LOCK_CHAOS_SEED", default_value_t = 1)]
    seed: u64,
    /// Members of the cluster.
    #[arg(long, env = "LOCK_CHAOS_NODES", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=7))]
    nodes: u64,
    /// Clients, each with two attempts at a time.
    #[arg(long, env = "LOCK_CHAOS_CLIENTS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=50))]
    clients: u64,
    /// How long things go wrong, in seconds. Start, mending and the last checks take about as long again.
    #[arg(long, env = "LOCK_CHAOS_SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// A run with fewer grants is void: it has shown nothing.
    #[arg(long, env = "LOCK_CHAOS_MIN_OPS", default_value_t = 30)]
    min_ops: usize,
    /// Where to put the history, the plan and the nodes' logs of a run that found something.
    #[arg(
        long,
        env = "LOCK_CHAOS_OUT",
        value_name = "DIR",
        default_value = "chaos-found"
    )]
    out: PathBuf,
    /// A bug to put in, and to see found.
    #[arg(long, env = "LOCK_CHAOS_PLANT", value_enum)]
    plant: Option<Plant>,
    /// The node's program [default: the lock-node beside this program].
    #[arg(long, env = "LOCK_CHAOS_NODE_PROGRAM", value_name = "FILE")]
    node_program: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run_all(&args).await,
        Command::Check { files } => check_all(&files),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all is well.
async fn run_all(args: &RunArgs) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let (mut failed, mut grants) = (Vec::new(), 0);
    for seed in args.seed..args.seed.saturating_add(args.runs) {
        let plan = Plan {
            nodes: usize::try_from(args.nodes)?,
            clients: usize::try_from(args.clients)?,
            seconds: args.seconds,
            plant: args.plant,
            ..Plan::new(seed)
        };
        let setup = Setup {
            program: args.node_program.clone(),
            ..Setup::default()
        };
        let folder = args.out.join(format!("seed-{seed}"));
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let began = Instant::now();
        let report = run(&plan, setup, Some(&folder)).await?;
        let well = tell(&plan, &report, args.min_ops, began.elapsed().as_secs_f64());
        if !well {
            failed.push(seed);
        }
        if report.violations.is_empty() {
            // Nothing to keep; the folder above it may have been there before.
            let _ = fs::remove_dir(&folder).and_then(|()| fs::remove_dir(&args.out));
        } else {
            keep(&folder, &plan, &report)?;
        }
        grants += report.grants;
    }
    println!(
        "{} runs in {:.0} s, {grants} grants: {} failed {failed:?}",
        args.runs,
        begun.elapsed().as_secs_f64(),
        failed.len()
    );
    Ok(failed.is_empty())
}

/// One line for a good run, more for another. Whether it was good.
fn tell(plan: &Plan, report: &Report, min_ops: usize, seconds: f64) -> bool {
    let void = report.grants < min_ops;
    let verdict = match (report.violations.is_empty(), void) {
        (false, _) => "FOUND",
        (true, true) => "VOID",
        (true, false) => "ok",
    };
    let (explained, passed_over) = report.explained;
    println!(
        "seed {}: {verdict}: {} faults, {} acquires answered ({} granted), {} unknown, \
         {explained} pieces of history explained ({passed_over} passed over), {seconds:.1} s",
        plan.seed, report.faults, report.told, report.grants, report.unknown,
    );
    for violation in report.violations.iter().take(5) {
        println!("  {violation}");
    }
    if void {
        println!("  fewer than {min_ops} grants: nothing was shown");
    }
    if verdict != "ok" {
        println!("  again: {}", plan.command());
    }
    verdict == "ok"
}

fn keep(folder: &Path, plan: &Plan, report: &Report) -> anyhow::Result<()> {
    let mut lines = String::new();
    for moment in &report.history {
        writeln!(lines, "{}", serde_json::to_string(moment)?)?;
    }
    fs::write(folder.join("history.jsonl"), lines)?;
    let mut text = format!("{}\n\n", plan.command());
    for (lane, number) in plan.lanes().iter().zip(1..) {
        for step in lane {
            writeln!(text, "lane {number}: {step}")?;
        }
    }
    writeln!(text, "\n{}", report.violations.join("\n"))?;
    fs::write(folder.join("found.txt"), text)?;
    println!("  kept in {}", folder.display());
    Ok(())
}

fn check_all(files: &[PathBuf]) -> anyhow::Result<bool> {
    let mut well = true;
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let history: Vec<Moment> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .with_context(|| format!("{} is no history", file.display()))?;
        let (violations, _) = lock_chaos::run::check(&history);
        println!(
            "{}: {} moments, {} violations",
            file.display(),
            history.len(),
            violations.len()
        );
        violations.iter().for_each(|violation| println!("  {violation}"));
        well &= violations.is_empty();
    }
    Ok(well)
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
