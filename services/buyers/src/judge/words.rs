//! Verdicts in sentences: why, with the numbers.

use ticketing_types::audit::Verdict;

use crate::stats::median;
use crate::{RoundReport, StrategyVerdict};

pub(super) fn reason_of_round(report: &RoundReport) -> String {
    let details = |verdict: Verdict| {
        let named = report.checks.iter().filter(|(_, c)| c.verdict == verdict);
        named
            .map(|(name, c)| format!("{name}: {}", c.detail))
            .collect::<Vec<_>>()
            .join("; ")
    };
    match report.verdict {
        StrategyVerdict::Fail => details(Verdict::Fail),
        StrategyVerdict::Unknown
            if report
                .checks
                .get("I9")
                .is_some_and(|c| c.verdict == Verdict::Fail) =>
        {
            details(Verdict::Fail)
        }
        StrategyVerdict::Unknown => details(Verdict::Unknown),
        _ => numbers(report),
    }
}

fn numbers(report: &RoundReport) -> String {
    let mut words = vec![format!("sold {} of {}", report.sold, report.capacity)];
    let lost_201 = report.lost_201;
    let wrong_duplicates = report.storm.as_ref().map_or(0, |s| s.wrong_duplicates);
    for (n, what) in [
        (report.oversold, "oversold"),
        (report.undersold, "left unsold"),
        (report.double_charged, "charges too many"),
        (report.charged_without_ticket, "charged without a ticket"),
        (report.ticket_without_charge, "tickets without a charge"),
        (wrong_duplicates, "second answers under one key"),
        (lost_201, "sales lost"),
    ] {
        if n > 0 {
            words.push(format!("{n} {what}"));
        }
    }
    if words.len() == 1 {
        words.push("nothing oversold, nobody charged twice".into());
    }
    words.join(", ")
}

pub(super) fn reason_of_strategy(verdict: StrategyVerdict, rounds: &[RoundReport]) -> String {
    let n = rounds.len();
    let with = |number: fn(&RoundReport) -> i64| rounds.iter().filter(|r| number(r) > 0).count();
    let typical = |number: fn(&RoundReport) -> i64| median(rounds.iter().map(|r| number(r) as f64));
    match verdict {
        StrategyVerdict::Fail | StrategyVerdict::Unknown => rounds
            .iter()
            .find(|r| r.verdict == verdict)
            .map_or_else(String::new, |r| format!("seed {}: {}", r.seed, r.reason)),
        StrategyVerdict::RaceReproduced => format!(
            "oversold in {} of {n} rounds (median {}), charged twice in {} of {n} (median {})",
            with(|r| r.oversold),
            typical(|r| r.oversold),
            with(|r| r.double_charged),
            typical(|r| r.double_charged),
        ),
        StrategyVerdict::RaceNotReproduced => {
            format!("nothing broke in {n} rounds; nothing was promised either")
        }
        StrategyVerdict::Pass => format!("every promise kept in {n} of {n} rounds"),
        StrategyVerdict::Skipped => String::new(),
    }
}
