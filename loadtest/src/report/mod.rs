//! The reports: a table on the screen, and `report.json`, `report.md` and `report.html` in a folder. All four
//! say the same; the JSON has every number, the HTML stands alone (no network, no script) and has the plots.

mod html;
mod plot;
mod table;

use std::path::Path;

use anyhow::Context as _;
use buyers::{Plan, Record, StrategyReport};
use serde::{Deserialize, Serialize};
use ticketing_types::Strategy;

use crate::cli::CompareArgs;
use crate::machine::{Machine, Versions};

/// `report.json` (DESIGN §8).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// What it ran on.
    pub machine: Machine,
    /// What was tested.
    pub versions: Versions,
    /// What was asked for.
    pub settings: Settings,
    /// One per strategy.
    pub strategies: Vec<StrategyReport>,
    /// The first round of each strategy, request by request.
    pub timelines: Vec<Timeline>,
}

/// What was asked for; whatever bends the race is said here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    /// Which suite.
    pub target: String,
    /// Seats per round.
    pub capacity: u32,
    /// Buyers per burst.
    pub buyers: u32,
    /// Rounds per strategy.
    pub rounds: u32,
    /// First seed.
    pub seed: u64,
    /// `stable`, `fresh`, or "the strategy's own".
    pub payment_key: String,
    /// How far the window between read and write was widened, in milliseconds. 0 is the honest race.
    pub widen_ms: u64,
    /// Whether there was a retry storm.
    pub storm: bool,
}

impl Settings {
    /// As the flags said.
    pub fn of(args: &CompareArgs, target: String) -> Self {
        Self {
            target,
            capacity: args.capacity,
            buyers: args.buyers,
            rounds: args.rounds,
            seed: args.seed,
            payment_key: args
                .payment_key
                .map_or("the strategy's own", |key| key.name())
                .to_owned(),
            widen_ms: args.widen_ms,
            storm: !args.no_storm,
        }
    }
}

/// One round, request by request: who asked when, and who read and wrote the stock when.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Timeline {
    /// The strategy.
    pub strategy: Strategy,
    /// The round's seed.
    pub seed: u64,
    /// One per buyer, in the order in which they asked.
    pub requests: Vec<Request>,
}

/// One request of a timeline; times in milliseconds after the first one was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The buyer's number.
    pub buyer: u32,
    /// When it was sent.
    pub sent_ms: f64,
    /// When its answer came.
    pub answered_ms: f64,
    /// What it got.
    pub outcome: String,
    /// When inventory read the stock for it, if a ticket came of it.
    pub read_ms: Option<f64>,
    /// When inventory wrote the stock for it.
    pub written_ms: Option<f64>,
}

impl Timeline {
    /// From what the buyers of a burst saw. The services' clocks and ours are one machine's: the first read
    /// is put where the fastest buyer's answer allows it.
    pub fn of(plan: &Plan, records: &[Record]) -> Self {
        let at = |record: &Record| record.answer.timings.and_then(|t| t.read_at.zip(t.written_at));
        let first_read = records.iter().filter_map(at).map(|(read, _)| read).min();
        let millis = |time: chrono::DateTime<chrono::Utc>| {
            first_read
                .and_then(|first| (time - first).num_microseconds())
                .map(|us| us as f64 / 1000.0)
        };
        let mut requests: Vec<Request> = records
            .iter()
            .map(|record| Request {
                buyer: record.index,
                sent_ms: record.sent_ms,
                answered_ms: record.sent_ms + record.latency_ms,
                outcome: record.answer.label(),
                read_ms: at(record).and_then(|(read, _)| millis(read)),
                written_ms: at(record).and_then(|(_, written)| millis(written)),
            })
            .collect();
        requests.sort_by(|a, b| a.sent_ms.total_cmp(&b.sent_ms));
        Self {
            strategy: plan.strategy,
            seed: plan.seed,
            requests,
        }
    }

    /// Pairs of sales that overlapped: the second read the stock before the first had written it.
    pub fn overlapping(&self) -> usize {
        let mut sections: Vec<(f64, f64)> = self
            .requests
            .iter()
            .filter_map(|r| r.read_ms.zip(r.written_ms))
            .collect();
        sections.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut busy_until = f64::NEG_INFINITY;
        let mut overlaps = 0;
        for (read, written) in sections {
            overlaps += usize::from(read < busy_until);
            busy_until = busy_until.max(written);
        }
        overlaps
    }
}

/// Prints the table.
#[allow(clippy::print_stdout)]
pub fn show(comparison: &Comparison) {
    println!("\n{}", table::screen(comparison));
}

/// Writes the three files and says where.
#[allow(clippy::print_stderr)]
pub fn write(comparison: &Comparison, folder: &Path) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(comparison).context("cannot write the report as JSON")?;
    let files = [
        ("report.json", json),
        ("report.md", table::markdown(comparison)),
        ("report.html", html::page(comparison)?),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(read_ms: f64, written_ms: f64) -> Request {
        Request {
            buyer: 0,
            sent_ms: 0.0,
            answered_ms: 9.0,
            outcome: "201".to_owned(),
            read_ms: Some(read_ms),
            written_ms: Some(written_ms),
        }
    }

    #[test]
    fn a_read_before_the_last_write_is_an_overlap() {
        let timeline = |requests| Timeline {
            strategy: Strategy::None,
            seed: 1,
            requests,
        };
        assert_eq!(
            timeline(vec![request(0.0, 1.0), request(1.5, 2.0)]).overlapping(),
            0
        );
        assert_eq!(
            timeline(vec![request(0.0, 1.0), request(0.5, 2.0), request(1.8, 3.0)]).overlapping(),
            2
        );
    }
}
