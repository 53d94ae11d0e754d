//! What a round means. Pure: records and audits in, verdict and sentences out.
//!
//! A strategy is held to what it promises, and to nothing else. `raft`, `atomic`, `optimistic` promise all of
//! DESIGN §8: one broken promise is *fail*. `none`, `process` and `raft-unfenced` promise nothing: broken is
//! *race reproduced*, and a lucky round is *race not reproduced*, never *pass*. With `Payment-Key: fresh` a
//! guarding strategy still answers for the stock, but not for the money: a lock stops two from charging at
//! once, not one from charging twice.
//!
//! Two checks only the buyers can make, and so they are made here: I9 (no answer but those that contention may
//! give) and that every 201 somebody saw is still true. I10 is decided here too: the books know who was
//! refused, the round knows who could have paid.

mod words;

use std::collections::BTreeMap;

use ticketing_types::audit::{AuditReport, Invariant, Verdict};
use ticketing_types::{PaymentKey, Strategy};

use self::words::{reason_of_round, reason_of_strategy};
use crate::stats::{LatencyMs, LockWaitMs, median};
use crate::{Evidence, Medians, Record, RoundReport, StormReport, StrategyReport, StrategyVerdict, storm};

/// The check that every 201 a buyer saw is still true.
pub const SEEN_201: &str = "seen_201";
/// The check that one key has one answer.
pub const ONE_ANSWER_PER_KEY: &str = "one_answer_per_key";
/// The promises about money: a guarding strategy with fresh payment keys does not make them.
const MONEY: [&str; 3] = ["I3", "I4", "I5"];
/// The promises that an audit gives a verdict on.
const AUDITED: [&str; 9] = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I10"];

/// Judges one round.
pub fn round(evidence: &Evidence) -> RoundReport {
    let Evidence { plan, burst, .. } = evidence;
    let audits = || evidence.audit.iter().chain(&evidence.storm_audit);
    let sum = |number: fn(&AuditReport) -> i64| audits().map(number).sum::<i64>();
    let sold = evidence.audit.as_ref().map_or(0, |a| a.sold);
    let storm = plan.storm.map(|_| storm_report(evidence));
    let wrong_duplicates = storm.as_ref().map_or(0, |s| s.wrong_duplicates);
    let undersold = undersold(evidence, sold);
    let checks = checks(evidence, undersold, wrong_duplicates);
    let seconds = burst.wall.as_secs_f64();
    let answered = burst.records.iter().filter(|r| !r.answer.is_silent()).count();
    let mut report = RoundReport {
        seed: plan.seed,
        event_id: plan.event_id(),
        strategy: plan.strategy,
        payment_key: plan.payment_key(),
        fault: plan.fault.as_ref().map(ToString::to_string),
        capacity: i64::from(plan.capacity),
        buyers: i64::from(plan.buyers),
        sold,
        oversold: sum(|a| a.oversold),
        undersold,
        double_charged: sum(|a| a.double_charged),
        charged_without_ticket: sum(|a| a.charged_without_ticket),
        ticket_without_charge: sum(|a| a.ticket_without_charge),
        outcomes: outcomes(&burst.records),
        wall_ms: seconds * 1000.0,
        purchases_per_s: if seconds > 0.0 {
            answered as f64 / seconds
        } else {
            0.0
        },
        latency_ms: LatencyMs::of(burst.records.iter().map(|r| r.latency_ms)),
        lock_wait_ms: LockWaitMs::of(
            burst
                .records
                .iter()
                .filter_map(|r| r.answer.timings)
                .map(|t| t.lock_wait_ms),
        ),
        storm,
        lost_201: evidence.kept.lost.len() as i64,
        checks,
        audit: evidence.audit.clone(),
        verdict: StrategyVerdict::Unknown,
        reason: String::new(),
    };
    report.verdict = verdict_of_round(&report);
    report.reason = reason_of_round(&report);
    report
}

/// Judges a strategy by its rounds.
pub fn strategy(name: Strategy, rounds: Vec<RoundReport>) -> StrategyReport {
    let Some(verdict) = rounds.iter().map(|r| r.verdict).max() else {
        return StrategyReport::skipped(name, "no round was run");
    };
    let reason = reason_of_strategy(verdict, &rounds);
    let medians = medians(&rounds);
    StrategyReport {
        name,
        verdict,
        reason,
        rounds,
        medians,
    }
}

/// The exit status of a comparison (DESIGN §8): 0 all promises kept, 1 a promise broken, 2 unknown, 3 nothing
/// could be run, 4 a threshold missed. The worst news first: a broken promise outweighs a slow answer.
pub fn exit_status(strategies: &[StrategyReport], threshold_missed: bool) -> u8 {
    let any = |verdict| strategies.iter().any(|s| s.verdict == verdict);
    if any(StrategyVerdict::Fail) {
        1
    } else if any(StrategyVerdict::Unknown) {
        2
    } else if strategies.iter().all(|s| s.verdict == StrategyVerdict::Skipped) {
        3
    } else if threshold_missed {
        4
    } else {
        0
    }
}

fn outcomes(records: &[Record]) -> BTreeMap<String, u64> {
    let mut outcomes = BTreeMap::new();
    for record in records {
        *outcomes.entry(record.answer.label()).or_default() += 1;
    }
    outcomes
}

/// Every buyer of the burst wants one ticket and can pay: as many seats as there are buyers for must be sold.
/// Before rest that cannot be said: a hold may still become a ticket.
fn undersold(evidence: &Evidence, sold: i64) -> i64 {
    if evidence.audit.is_none() || !evidence.at_rest {
        return 0;
    }
    let wanted = i64::from(evidence.plan.capacity.min(evidence.plan.buyers));
    (wanted - sold).max(0)
}

fn storm_report(evidence: &Evidence) -> StormReport {
    let audit = evidence.storm_audit.as_ref();
    StormReport {
        event_id: evidence.plan.storm_event_id(),
        buyers: evidence
            .plan
            .storm
            .map_or(0, |s| i64::from(s.triples + s.lost_replies)),
        requests: evidence.storm.len() as i64,
        sold: audit.map_or(0, |a| a.sold),
        double_charged: audit.map_or(0, |a| a.double_charged),
        wrong_duplicates: storm::wrong_duplicates(&evidence.storm) as i64,
        outcomes: outcomes(&evidence.storm),
        audit: evidence.storm_audit.clone(),
    }
}

fn checks(evidence: &Evidence, undersold: i64, wrong_duplicates: i64) -> BTreeMap<String, Invariant> {
    let mut checks: BTreeMap<String, Invariant> = AUDITED
        .into_iter()
        .map(|name| (name.to_owned(), audited(evidence, name)))
        .collect();
    if !evidence.at_rest {
        let seconds = evidence.plan.rest_timeout.as_secs();
        let not_yet = unknown(format!("purchases were pending or holds stood after {seconds} s"));
        worsen(&mut checks, "I6", not_yet);
    }
    let willing = evidence.plan.buyers;
    let i10 = if evidence.audit.is_none() || !evidence.at_rest {
        unknown("not at rest, or the books could not be read".into())
    } else if undersold > 0 {
        fail(format!(
            "{undersold} seats were left although {willing} buyers could pay"
        ))
    } else {
        pass(format!(
            "no seat was left that one of {willing} buyers who could pay would have taken"
        ))
    };
    checks.insert("I10".into(), i10);
    checks.insert("I9".into(), answers(evidence));
    checks.insert(SEEN_201.into(), seen_201(evidence));
    if evidence.plan.storm.is_some() {
        let requests = evidence.storm.len();
        let one_answer = match wrong_duplicates {
            0 => pass(format!(
                "{requests} requests of the storm got one answer per key, a replay of it, or a request to wait"
            )),
            n => fail(format!(
                "{n} of {requests} answers of the storm were a second answer under the same key"
            )),
        };
        checks.insert(ONE_ANSWER_PER_KEY.into(), one_answer);
    }
    checks
}

/// What the audits of both events say of one promise: the worse of the two.
fn audited(evidence: &Evidence, name: &str) -> Invariant {
    let unread = |what: &str| unknown(format!("the audit of the {what} could not be read"));
    let of = |audit: Option<&AuditReport>, what: &str| match audit {
        Some(audit) => audit
            .invariants
            .get(name)
            .cloned()
            .unwrap_or_else(|| unread(what)),
        None => unread(what),
    };
    let burst = of(evidence.audit.as_ref(), "burst");
    if evidence.plan.storm.is_none() {
        return burst;
    }
    let storm = of(evidence.storm_audit.as_ref(), "storm");
    if storm.verdict > burst.verdict {
        Invariant {
            detail: format!("storm: {}", storm.detail),
            ..storm
        }
    } else {
        burst
    }
}

/// I9: contention is never a 5xx other than 503 with `Retry-After`.
fn answers(evidence: &Evidence) -> Invariant {
    let burst = evidence.burst.records.iter();
    // In the storm a buyer hangs up on purpose: its silence is its own.
    let storm = evidence.storm.iter().filter(|r| !r.answer.is_silent());
    let all: Vec<&Record> = burst.chain(storm).collect();
    let total = all.len();
    let count = |wrong: &dyn Fn(&Record) -> bool| {
        let mut labels: BTreeMap<String, u64> = BTreeMap::new();
        for record in all.iter().filter(|r| wrong(r)) {
            *labels.entry(record.answer.label()).or_default() += 1;
        }
        let words: Vec<_> = labels.iter().map(|(label, n)| format!("{n} × {label}")).collect();
        (labels.values().sum::<u64>(), words.join(", "))
    };
    let (wrong, which) = count(&|r| !r.answer.is_silent() && !r.answer.is_allowed());
    if wrong > 0 {
        return fail(format!(
            "{wrong} of {total} answers are none that contention may give: {which}"
        ));
    }
    let (silent, which) = count(&|r| r.answer.is_silent());
    if silent > 0 {
        return unknown(format!("{silent} of {total} requests got no answer: {which}"));
    }
    pass(format!(
        "all {total} answers were a sale, a refusal, or 503 with Retry-After"
    ))
}

fn seen_201(evidence: &Evidence) -> Invariant {
    let kept = &evidence.kept;
    if let Some(example) = kept.lost.first() {
        fail(format!(
            "{} of {} completed purchases that buyers saw are gone: {example}",
            kept.lost.len(),
            kept.seen
        ))
    } else if kept.unreadable > 0 {
        unknown(format!(
            "{} of {} purchases that buyers saw could not be read",
            kept.unreadable, kept.seen
        ))
    } else {
        pass(format!(
            "all {} completed purchases that buyers saw are in the books with their tickets",
            kept.seen
        ))
    }
}

fn worsen(checks: &mut BTreeMap<String, Invariant>, name: &str, other: Invariant) {
    let check = checks.entry(name.to_owned()).or_insert_with(|| other.clone());
    if other.verdict > check.verdict {
        *check = other;
    }
}

fn pass(detail: String) -> Invariant {
    Invariant {
        verdict: Verdict::Pass,
        detail,
    }
}

fn unknown(detail: String) -> Invariant {
    Invariant {
        verdict: Verdict::Unknown,
        detail,
    }
}

fn fail(detail: String) -> Invariant {
    Invariant {
        verdict: Verdict::Fail,
        detail,
    }
}

/// Whether the strategy answers for this check in this round.
fn promised(report: &RoundReport, check: &str) -> bool {
    let money_is_open = report.payment_key == PaymentKey::Fresh && MONEY.contains(&check);
    report.strategy.promises() && !money_is_open
}

fn verdict_of_round(report: &RoundReport) -> StrategyVerdict {
    let of = |(name, check): (&String, &Invariant)| match (check.verdict, promised(report, name)) {
        (Verdict::Pass, true) => StrategyVerdict::Pass,
        (Verdict::Pass, false) => StrategyVerdict::RaceNotReproduced,
        (Verdict::Unknown, _) => StrategyVerdict::Unknown,
        (Verdict::Fail, true) => StrategyVerdict::Fail,
        // A 500 is a defect of the suite, not the race that this round is to show.
        (Verdict::Fail, false) if name == "I9" => StrategyVerdict::Unknown,
        (Verdict::Fail, false) => StrategyVerdict::RaceReproduced,
    };
    report
        .checks
        .iter()
        .map(of)
        .max()
        .unwrap_or(StrategyVerdict::Unknown)
}

fn medians(rounds: &[RoundReport]) -> Medians {
    let of = |number: fn(&RoundReport) -> f64| median(rounds.iter().map(number));
    Medians {
        sold: of(|r| r.sold as f64),
        oversold: of(|r| r.oversold as f64),
        undersold: of(|r| r.undersold as f64),
        double_charged: of(|r| r.double_charged as f64),
        charged_without_ticket: of(|r| r.charged_without_ticket as f64),
        ticket_without_charge: of(|r| r.ticket_without_charge as f64),
        wall_ms: of(|r| r.wall_ms),
        purchases_per_s: of(|r| r.purchases_per_s),
        latency_ms: LatencyMs {
            p50: of(|r| r.latency_ms.p50),
            p95: of(|r| r.latency_ms.p95),
            p99: of(|r| r.latency_ms.p99),
            max: of(|r| r.latency_ms.max),
        },
        lock_wait_ms: LockWaitMs {
            p50: of(|r| r.lock_wait_ms.p50),
            p99: of(|r| r.lock_wait_ms.p99),
        },
    }
}

#[cfg(test)]
mod tests;
