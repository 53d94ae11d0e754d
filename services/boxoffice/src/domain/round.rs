//! Rounds as the API shows them.

use buyers::{RoundProgress, RoundReport};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use service_kit::context::parse_strategy;
use service_kit::{FieldError, Problem};
use ticketing_types::{EventId, PaymentKey, Strategy};
use utoipa::ToSchema;

/// Most seats of a round.
const CAPACITY_MAX: u32 = 1000;
/// Most buyers of a round.
const BUYERS_MAX: u32 = 2000;

/// The body of `POST /v1/rounds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartRound {
    /// How the critical sections are guarded: `none`, `process`, `raft`, …
    #[schema(example = "none")]
    pub(crate) strategy: String,
    /// Seats.
    #[schema(minimum = 1, maximum = 1000, example = 100)]
    pub(crate) capacity: u32,
    /// Buyers, released together.
    #[schema(minimum = 1, maximum = 2000, example = 1000)]
    pub(crate) buyers: u32,
    /// Whether buyers who send their purchase again come after the burst (default: yes).
    #[serde(default = "yes")]
    pub(crate) retry_storm: bool,
    /// `stable` or `fresh` (default: as the strategy wants).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payment_key: Option<PaymentKey>,
    /// Who buys under which key is drawn from here (default: 1).
    #[serde(default = "one")]
    pub(crate) seed: u64,
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

impl StartRound {
    /// The strategy, when everything is within its bounds.
    pub(crate) fn check(&self) -> Result<Strategy, Problem> {
        let strategy = parse_strategy(&self.strategy)?;
        let mut errors = Vec::new();
        for (pointer, value, max) in [
            ("/capacity", self.capacity, CAPACITY_MAX),
            ("/buyers", self.buyers, BUYERS_MAX),
        ] {
            if !(1..=max).contains(&value) {
                let reason = format!("a whole number from 1 to {max}");
                errors.push(FieldError {
                    pointer: pointer.into(),
                    reason,
                });
            }
        }
        if errors.is_empty() {
            Ok(strategy)
        } else {
            Err(Problem::invalid_request(errors))
        }
    }
}

/// Where a round stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoundStatus {
    /// At it.
    Running,
    /// Judged: `result` says what it came to.
    Done,
    /// The strategy is not available here: `detail` says why.
    Skipped,
    /// It could not be run to its end: `detail` says why.
    Failed,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct RoundView {
    /// The round.
    pub(crate) id: String,
    /// Where it stands.
    pub(crate) status: RoundStatus,
    /// What was asked for.
    pub(crate) request: StartRound,
    /// The event it sells.
    pub(crate) event_id: EventId,
    /// When it began.
    pub(crate) started_at: DateTime<Utc>,
    /// How far it has come.
    pub(crate) progress: RoundProgress,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<RoundReport>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// The body of `GET /v1/rounds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct RoundList {
    /// Newest first.
    pub(crate) rounds: Vec<RoundView>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(strategy: &str, capacity: u32, buyers: u32) -> Result<Strategy, Problem> {
        let body = serde_json::json!({"strategy": strategy, "capacity": capacity, "buyers": buyers});
        serde_json::from_value::<StartRound>(body)
            .expect("the shape is right")
            .check()
    }

    #[test]
    fn a_round_has_bounds() {
        assert_eq!(start("raft", 1000, 2000), Ok(Strategy::Raft));
        let problem = start("none", 0, 2001).expect_err("both out of range");
        assert_eq!(problem.slug, "invalid-request");
        assert_eq!(
            problem
                .member::<Vec<serde_json::Value>>("errors")
                .map(|e| e.len()),
            Some(2)
        );
        assert_eq!(
            start("mutex", 1, 1).expect_err("unknown").slug,
            "unknown-strategy"
        );
    }
}
