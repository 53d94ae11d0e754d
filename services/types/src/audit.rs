//! The audit's verdict (DESIGN §8): what `GET /v1/audit/{event_id}` answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::EventId;

/// What the audit says of one promise, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Kept.
    Pass,
    /// A book could not be read: neither kept nor broken.
    Unknown,
    /// Broken.
    Fail,
}

impl Verdict {
    /// The verdict over several: broken if one is broken, else unknown if one is unknown, else kept.
    pub fn all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Pass)
    }
}

/// One promise, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Invariant {
    /// Kept, broken or unknown.
    pub verdict: Verdict,
    /// The numbers behind the verdict, in a sentence.
    pub detail: String,
}

/// Purchases by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurchaseCounts {
    /// With tickets and a charge.
    pub completed: i64,
    /// The card was declined.
    pub declined: i64,
    /// The stock was gone.
    pub sold_out: i64,
    /// Somebody is still at it.
    pub pending: i64,
    /// Ended for another reason (limit reached, busy, cancelled, …).
    pub other: i64,
}

/// The verdict over all books of one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditReport {
    /// The event.
    pub event_id: EventId,
    /// Seats.
    pub capacity: i64,
    /// The counter.
    pub available: i64,
    /// Tickets in running holds.
    pub held: i64,
    /// Tickets.
    pub sold: i64,
    /// `sold − capacity` when positive.
    pub oversold: i64,
    /// Tickets that buyers who could pay were refused although seats were left.
    pub undersold: i64,
    /// Purchases by how they ended.
    pub purchases: PurchaseCounts,
    /// Purchases with money taken at the gateway.
    pub charged: i64,
    /// Charges too many: captures beyond the first, per buyer and key.
    pub double_charged: i64,
    /// Purchases with money taken (and not refunded) and no ticket.
    pub charged_without_ticket: i64,
    /// Purchases with tickets and no money taken.
    pub ticket_without_charge: i64,
    /// Writes refused because a newer fencing token had been seen.
    pub stale_tokens_rejected: i64,
    /// I1 to I10, those that an audit can check.
    pub invariants: BTreeMap<String, Invariant>,
    /// Over all invariants.
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_promise_outweighs_an_unknown_one() {
        use Verdict::{Fail, Pass, Unknown};
        assert_eq!(Verdict::all([Pass, Unknown, Fail]), Fail);
        assert_eq!(Verdict::all([Pass, Unknown]), Unknown);
        assert_eq!(Verdict::all([]), Pass);
    }
}
