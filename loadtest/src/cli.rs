//! The flags of `loadtest`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use service_kit::args::parse_strategy;
use ticketing_types::{PaymentKey, Strategy};

/// Fires concurrent buyers at a Last Ticket suite and counts oversells and double charges.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version, after_help = EXIT_HELP)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_HELP: &str = "\
Exit status: 0 all promises kept · 1 a promise broken · 2 unknown (a book could not be read) ·
3 usage or environment · 4 a threshold missed";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run rounds of several strategies and put them side by side
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArgs),
}

const COMPARE_HELP: &str = "\
Examples:
  loadtest compare                                       the whole lesson: five strategies, five rounds each
  loadtest compare --strategies none,raft --rounds 1     the short one
  loadtest compare --strategies none --widen-ms 5        widen the window between read and write (it is reported)
  loadtest compare --strategies raft --payment-key fresh a lock does not stop a second charge after a lost reply
  loadtest compare --target http://127.0.0.1:8080        against a suite that runs already

Exit status: 0 all promises kept · 1 a promise broken · 2 unknown (a book could not be read) ·
3 usage or environment · 4 a threshold missed.
`none` and `process` promise nothing: a lost race is what they are here to show.";

/// Flags of `loadtest compare`.
#[derive(Debug, Clone, Parser)]
pub struct CompareArgs {
    /// Strategies to compare, comma-separated, in the order of the report
    #[arg(
        long,
        env = "LOADTEST_STRATEGIES",
        value_delimiter = ',',
        default_value = "none,process,raft,atomic,optimistic",
        value_parser = parse_strategy
    )]
    pub strategies: Vec<Strategy>,

    /// Seats of each round's event (1 to 1000000)
    #[arg(long, env = "LOADTEST_CAPACITY", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub capacity: u32,

    /// Buyers of each burst; each is a user of its own, sends one purchase, and can pay (1 to 5000)
    #[arg(long, env = "LOADTEST_BUYERS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub buyers: u32,

    /// Rounds of each strategy; the report has each and the medians (1 to 100)
    #[arg(long, env = "LOADTEST_ROUNDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// First seed: round n of every strategy uses seed + n, so all see the same buyers
    #[arg(long, env = "LOADTEST_SEED", default_value_t = 1)]
    pub seed: u64,

    /// Folder for report.html, report.md and report.json (made when missing)
    #[arg(long, env = "LOADTEST_OUT", default_value = "loadtest-report")]
    pub out: PathBuf,

    /// Front door of a running suite; without it, a suite is started for the run and stopped after it
    #[arg(long, env = "LOADTEST_TARGET")]
    pub target: Option<String>,

    /// Database of the suite started for the run: postgres://… (a database per service, made when missing) [default: SQLite in a temporary folder]
    #[arg(long, env = "LOADTEST_DATABASE_URL", conflicts_with = "target")]
    pub database_url: Option<String>,

    /// How payment keys are made: stable or fresh [default: the strategy's own: fresh for none, stable for all others]
    #[arg(long, env = "LOADTEST_PAYMENT_KEY", value_parser = parse_payment_key)]
    pub payment_key: Option<PaymentKey>,

    /// Widen the window between inventory's read and its write, in milliseconds; 0 is the honest race
    #[arg(long, env = "LOADTEST_WIDEN_MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub widen_ms: u64,

    /// Leave the retry storm out
    #[arg(long, env = "LOADTEST_NO_STORM", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_storm: bool,

    /// Exit with 4 when a strategy's median p99 latency is above this many milliseconds
    #[arg(long, env = "LOADTEST_MAX_P99_MS")]
    pub max_p99_ms: Option<f64>,
}

fn parse_payment_key(text: &str) -> Result<PaymentKey, String> {
    text.parse()
        .map_err(|why: ticketing_types::Invalid| why.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_has_an_environment_variable() {
        testkit::check_flags(Args::command());
    }

    #[test]
    fn no_arguments_mean_the_whole_lesson() {
        let Command::Compare(args) = Args::parse_from(["loadtest", "compare"]).command;
        assert_eq!((args.capacity, args.buyers, args.rounds), (100, 1000, 5));
        let names: Vec<_> = args.strategies.iter().map(|s| s.name()).collect();
        assert_eq!(names, ["none", "process", "raft", "atomic", "optimistic"]);
        assert_eq!(args.widen_ms, 0);
    }

    #[test]
    fn out_of_range_is_refused_before_anything_starts() {
        for bad in [
            ["--buyers", "0"],
            ["--rounds", "0"],
            ["--capacity", "1000001"],
            ["--strategies", "mutex"],
        ] {
            assert!(
                Args::try_parse_from(["loadtest", "compare"].into_iter().chain(bad)).is_err(),
                "{bad:?}"
            );
        }
    }
}
