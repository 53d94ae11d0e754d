//! The comparison as a table: plain for the screen, Markdown for a slide or a README.

use std::fmt::Write as _;

use buyers::{StrategyReport, StrategyVerdict};

use super::Comparison;

const COLUMNS: [&str; 10] = [
    "strategy",
    "verdict",
    "sold",
    "oversold",
    "undersold",
    "double charges",
    "charged, no ticket",
    "purchases/s",
    "p50 ms",
    "p99 ms",
];

/// The cells of one strategy: the worst round of what must never happen, the median of what varies.
fn cells(report: &StrategyReport, capacity: u32) -> [String; 10] {
    let name = report.name.name().to_owned();
    if report.verdict == StrategyVerdict::Skipped {
        let dash = || "–".to_owned();
        return [
            name,
            "skipped".to_owned(),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
        ];
    }
    let range = |of: fn(&buyers::RoundReport) -> i64| {
        let values = || report.rounds.iter().map(of);
        match (values().min().unwrap_or(0), values().max().unwrap_or(0)) {
            (min, max) if min == max => min.to_string(),
            (min, max) => format!("{min}–{max}"),
        }
    };
    [
        name,
        report.verdict.to_string(),
        format!("{} of {capacity}", range(|r| r.sold)),
        range(|r| r.oversold),
        range(|r| r.undersold),
        range(|r| r.double_charged),
        range(|r| r.charged_without_ticket),
        format!("{:.0}", report.medians.purchases_per_s),
        format!("{:.0}", report.medians.latency_ms.p50),
        format!("{:.0}", report.medians.latency_ms.p99),
    ]
}

fn rows(comparison: &Comparison) -> Vec<[String; 10]> {
    comparison
        .strategies
        .iter()
        .map(|s| cells(s, comparison.settings.capacity))
        .collect()
}

/// What the table was measured with, in two lines.
pub(super) fn footing(comparison: &Comparison) -> String {
    let Comparison {
        machine,
        versions,
        settings,
        ..
    } = comparison;
    let widened = match settings.widen_ms {
        0 => "no added delay".to_owned(),
        ms => format!("window widened by {ms} ms"),
    };
    format!(
        "{} seats, {} buyers, {} rounds each, seed {}, {widened}, payment keys: {}. {} ({} build {}).\n\
         Counts are lowest–highest over the rounds, times are medians. {machine}.",
        settings.capacity,
        settings.buyers,
        settings.rounds,
        settings.seed,
        settings.payment_key,
        settings.target,
        versions.build,
        versions.last_ticket,
    )
}

/// For a terminal.
pub(super) fn screen(comparison: &Comparison) -> String {
    let rows = rows(comparison);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([COLUMNS[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<_> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            // Words to the left, numbers to the right.
            .map(|(n, (cell, width))| {
                if n < 2 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        padded.join("  ")
    };
    let mut text = String::new();
    let _ = writeln!(text, "{}", line(&COLUMNS.map(str::to_owned)));
    let _ = writeln!(
        text,
        "{}",
        widths
            .iter()
            .map(|w| "─".repeat(*w))
            .collect::<Vec<_>>()
            .join("  ")
    );
    for row in &rows {
        let _ = writeln!(text, "{}", line(row));
    }
    for strategy in &comparison.strategies {
        let _ = writeln!(text, "{}: {}", strategy.name, strategy.reason);
    }
    let _ = write!(text, "{}", footing(comparison));
    text
}

/// For a document.
pub(super) fn markdown(comparison: &Comparison) -> String {
    let mut text = String::from("# Last Ticket: strategies side by side\n\n");
    let _ = writeln!(text, "| {} |", COLUMNS.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---:|".repeat(COLUMNS.len() - 2));
    for row in rows(comparison) {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    let _ = writeln!(text, "\n{}\n", footing(comparison));
    for strategy in &comparison.strategies {
        let _ = writeln!(
            text,
            "- **{}**: {}. {}",
            strategy.name, strategy.verdict, strategy.reason
        );
    }
    text
}
