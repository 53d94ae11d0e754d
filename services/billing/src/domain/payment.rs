//! One attempt to be paid, and the statuses it goes through.
//!
//! ```text
//!                ┌────────────► declined
//!  authorizing ──┤
//!                └─► authorized ──► capturing ──► captured
//!       │                │
//!       └────► voiding ◄─┘
//!                 └─► voided
//! ```
//!
//! One more arrow is drawn only by races without a guard, `voiding ──► capturing`: the processor refused the void,
//! because the money was taken meanwhile, and what became of that is asked about again.
//!
//! The in-between statuses are written *before* the processor is asked. They mean "the outcome is unknown", and
//! whoever finds one (the caller's retry, or the settling worker) asks again.

use chrono::{DateTime, Utc};
use ticketing_types::billing::{AuthorizePayment, PaymentStatus, PaymentView};
use ticketing_types::{PaymentId, SectionTimings, Strategy};

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Authorizing,
    Authorized,
    Capturing,
    Captured,
    Voiding,
    Voided,
    Declined,
}

impl Status {
    pub(crate) const ALL: [Self; 7] = [
        Self::Authorizing,
        Self::Authorized,
        Self::Capturing,
        Self::Captured,
        Self::Voiding,
        Self::Voided,
        Self::Declined,
    ];

    /// As it stands in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Authorizing => "authorizing",
            Self::Authorized => "authorized",
            Self::Capturing => "capturing",
            Self::Captured => "captured",
            Self::Voiding => "voiding",
            Self::Voided => "voided",
            Self::Declined => "declined",
        }
    }

    /// As others see it. They learn of a step when its outcome is known, so a capture under way is still an
    /// authorization. A void under way is a void already: from here on nothing of this payment can be captured.
    pub(crate) fn on_the_wire(self) -> PaymentStatus {
        match self {
            Self::Authorizing => PaymentStatus::Authorizing,
            Self::Authorized | Self::Capturing => PaymentStatus::Authorized,
            Self::Captured => PaymentStatus::Captured,
            Self::Voiding | Self::Voided => PaymentStatus::Voided,
            Self::Declined => PaymentStatus::Declined,
        }
    }

    /// Which row speaks for the payment when a race has left several: where money was taken, else where it was
    /// given back (that closes the payment), else where it is reserved.
    fn rank(self) -> u8 {
        match self {
            Self::Captured => 0,
            Self::Capturing => 1,
            Self::Voided => 2,
            Self::Voiding => 3,
            Self::Authorized => 4,
            Self::Authorizing => 5,
            Self::Declined => 6,
        }
    }
}

/// One attempt to be paid: one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Payment {
    pub(crate) attempt_id: String,
    pub(crate) payment_id: PaymentId,
    pub(crate) strategy: Strategy,
    /// What was asked for; nothing, when the payment was voided before it was ever asked for.
    pub(crate) asked: Option<AuthorizePayment>,
    pub(crate) status: Status,
    pub(crate) authorization_id: Option<String>,
    pub(crate) capture_id: Option<String>,
    pub(crate) captured_minor: i64,
    pub(crate) refunded_minor: i64,
    pub(crate) fencing_token: Option<i64>,
    pub(crate) version: i64,
    /// Until when the call to the processor belongs to somebody.
    pub(crate) claimed_until: Option<DateTime<Utc>>,
    pub(crate) created_at: DateTime<Utc>,
}

impl Payment {
    /// Whether somebody is at it who takes no lock.
    pub(crate) fn is_claimed(&self, now: DateTime<Utc>) -> bool {
        self.claimed_until.is_some_and(|until| until > now)
    }

    /// What could still be given back.
    pub(crate) fn refundable_minor(&self) -> i64 {
        self.captured_minor - self.refunded_minor
    }

    pub(crate) fn view(&self, timings: SectionTimings) -> PaymentView {
        PaymentView {
            id: self.payment_id.clone(),
            status: self.status.on_the_wire(),
            buyer: self.asked.as_ref().map(|asked| asked.buyer.clone()),
            amount: self.asked.as_ref().map(|asked| asked.amount),
            refunded_minor: self.refunded_minor,
            created_at: self.created_at,
            timings,
        }
    }
}

/// The row that speaks for the payment. `rows` are oldest first; among equals the first one counts.
pub(crate) fn leading(rows: &[Payment]) -> Option<&Payment> {
    rows.iter().min_by_key(|row| row.status.rank())
}
