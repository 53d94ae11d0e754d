//! What a round and a strategy are reported as (DESIGN §8): the shape of `report.json`, and of
//! `GET /v1/rounds/{id}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ticketing_types::audit::{AuditReport, Invariant};
use ticketing_types::{EventId, PaymentKey, Strategy};
use utoipa::ToSchema;

use crate::stats::{LatencyMs, LockWaitMs};

/// What a round, or all rounds of a strategy, come to.
///
/// The order is the order of precedence: a strategy's verdict is the greatest of its rounds'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub enum StrategyVerdict {
    /// It was not run.
    #[serde(rename = "skipped")]
    Skipped,
    /// Every promise was kept.
    #[serde(rename = "pass")]
    Pass,
    /// Nothing was promised, and nothing broke this time.
    #[serde(rename = "race not reproduced")]
    RaceNotReproduced,
    /// A book could not be read, or an answer was lost.
    #[serde(rename = "unknown")]
    Unknown,
    /// Nothing was promised, and something broke.
    #[serde(rename = "race reproduced")]
    RaceReproduced,
    /// A promise was broken.
    #[serde(rename = "fail")]
    Fail,
}

impl StrategyVerdict {
    /// As the report writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Pass => "pass",
            Self::RaceNotReproduced => "race not reproduced",
            Self::Unknown => "unknown",
            Self::RaceReproduced => "race reproduced",
            Self::Fail => "fail",
        }
    }
}

impl std::fmt::Display for StrategyVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One round.
///
/// `sold`, `capacity`, `outcomes`, the times and `wall_ms` are the burst's. `oversold`, `double_charged`,
/// `charged_without_ticket` and `ticket_without_charge` are summed over the burst's event and the storm's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoundReport {
    /// The seed.
    pub seed: u64,
    /// The event of the burst.
    pub event_id: EventId,
    /// Guarded how.
    pub strategy: Strategy,
    /// How payment keys were made.
    pub payment_key: PaymentKey,
    /// The fault that travelled with every purchase, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Seats.
    pub capacity: i64,
    /// Buyers of the burst.
    pub buyers: i64,
    /// Tickets.
    pub sold: i64,
    /// Tickets beyond the seats.
    pub oversold: i64,
    /// Seats left although there were buyers for them.
    pub undersold: i64,
    /// Captures beyond the first, per buyer and key.
    pub double_charged: i64,
    /// Purchases with money taken and no ticket.
    pub charged_without_ticket: i64,
    /// Purchases with tickets and no money taken.
    pub ticket_without_charge: i64,
    /// Answers of the burst by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// From the release of the buyers to the last answer, in milliseconds.
    pub wall_ms: f64,
    /// Purchases answered per second of the burst, whatever the answer.
    pub purchases_per_s: f64,
    /// How long answers took.
    pub latency_ms: LatencyMs,
    /// How long those who said so stood in line for locks.
    pub lock_wait_ms: LockWaitMs,
    /// The retry storm, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm: Option<StormReport>,
    /// 201s that buyers saw and that the books no longer know as completed with those tickets.
    pub lost_201: i64,
    /// Every promise with its verdict: I1 to I10, and what only the buyers can know.
    pub checks: BTreeMap<String, Invariant>,
    /// The audit of the burst's event, when it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
    /// What it comes to.
    pub verdict: StrategyVerdict,
    /// Why, in a sentence.
    pub reason: String,
}

/// The retry storm of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StormReport {
    /// Its event.
    pub event_id: EventId,
    /// Buyers in it.
    pub buyers: i64,
    /// Requests they sent.
    pub requests: i64,
    /// Tickets.
    pub sold: i64,
    /// Captures beyond the first, per buyer and key.
    pub double_charged: i64,
    /// Answers that should have been the stored one, or "still at it", and were neither.
    pub wrong_duplicates: i64,
    /// Answers by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// The audit of its event, when it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
}

/// The middle of all rounds of a strategy, number by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "the fields are those of a round")]
pub struct Medians {
    pub sold: f64,
    pub oversold: f64,
    pub undersold: f64,
    pub double_charged: f64,
    pub charged_without_ticket: f64,
    pub ticket_without_charge: f64,
    pub wall_ms: f64,
    pub purchases_per_s: f64,
    pub latency_ms: LatencyMs,
    pub lock_wait_ms: LockWaitMs,
}

/// All rounds of one strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StrategyReport {
    /// The strategy.
    pub name: Strategy,
    /// What its rounds come to.
    pub verdict: StrategyVerdict,
    /// Why, in a sentence.
    pub reason: String,
    /// One by one.
    pub rounds: Vec<RoundReport>,
    /// In the middle.
    pub medians: Medians,
}

impl StrategyReport {
    /// A strategy that could not be run, and why. Never "passed".
    pub fn skipped(name: Strategy, reason: impl Into<String>) -> Self {
        Self {
            name,
            verdict: StrategyVerdict::Skipped,
            reason: reason.into(),
            rounds: Vec::new(),
            medians: Medians::default(),
        }
    }
}
