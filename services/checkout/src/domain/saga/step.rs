//! The saga's vocabulary: what can be asked of the other services, and what can come of it.

use serde::{Deserialize, Serialize};
use ticketing_types::inventory::{ShortLine, Ticket};
use ticketing_types::{EventId, Money};

/// One call to another service. Every step may be taken again: the purchase's id is the hold's id and the
/// payment's id, so a repeat is recognised where it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ask inventory for the seats.
    PlaceHold,
    /// Reserve the money.
    Authorize {
        /// What the hold said the seats cost.
        amount: Money,
    },
    /// Turn the hold into tickets: the pivot.
    ConfirmHold,
    /// Take the reserved money.
    Capture,
    /// Undo of `Authorize`: give the reservation back and close the payment's id.
    VoidPayment,
    /// Undo of `PlaceHold`: give the seats back and close the hold's id.
    ReleaseHold,
    /// Give taken money back, all of it.
    Refund {
        /// What was taken.
        amount: Money,
    },
}

impl Step {
    /// The name in traces and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlaceHold => "place-hold",
            Self::Authorize { .. } => "authorize",
            Self::ConfirmHold => "confirm-hold",
            Self::Capture => "capture",
            Self::VoidPayment => "void-payment",
            Self::ReleaseHold => "release-hold",
            Self::Refund { .. } => "refund",
        }
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is done, now or by an earlier attempt.
    Done(Done),
    /// It was refused for good: asking again would be refused again.
    Rejected(Rejection),
    /// No answer, or one that does not say: it may have been done, and may still be.
    Unknown,
    /// A clear answer that nothing was done this time, and that asking again may help.
    Busy,
}

impl Outcome {
    /// The name in traces and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Rejected(_) => "rejected",
            Self::Unknown => "unknown",
            Self::Busy => "busy",
        }
    }
}

/// What a step that was done brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// The seats are held.
    HoldPlaced {
        /// What they cost together.
        amount: Money,
    },
    /// The money is reserved.
    Authorized,
    /// The seats are the buyer's.
    HoldConfirmed {
        /// One ticket per seat.
        tickets: Vec<Ticket>,
    },
    /// The money is taken.
    Captured,
    /// No money is reserved, and none can be.
    PaymentVoided,
    /// No seats are held, and none can be.
    HoldReleased,
    /// The money is given back.
    Refunded,
}

/// Why a purchase ended without tickets and without a charge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Rejection {
    /// Not enough seats.
    SoldOut {
        /// The events that were short.
        lines: Vec<ShortLine>,
    },
    /// The buyer would own more of an event than one buyer may.
    LimitReached {
        /// Inventory's words.
        detail: String,
        /// Of which event.
        event_id: Option<EventId>,
        /// How many one buyer may own.
        limit: Option<i64>,
    },
    /// The cart names an event that does not exist.
    UnknownEvent {
        /// Inventory's words.
        detail: String,
    },
    /// The cart's prices are not of one currency.
    MixedCurrencies {
        /// Inventory's words.
        detail: String,
    },
    /// The cart's price does not fit 63 bits.
    AmountOverflow {
        /// Inventory's words.
        detail: String,
    },
    /// The card was declined.
    PaymentDeclined,
    /// The hold ran out before the money was reserved.
    HoldExpired,
    /// The buyer called it off before the pivot.
    Cancelled,
    /// A service refused in a way that is in nobody's contract; the log has its words.
    Refused {
        /// The slug of its problem.
        slug: String,
    },
    /// Inventory was too busy to hold anything. The one rejection that is not kept as the answer: the same
    /// key may start again.
    Busy,
}

impl Rejection {
    /// The reason in a word: the slug of the problem that the buyer is answered with.
    pub fn slug(&self) -> &'static str {
        match self {
            Self::SoldOut { .. } => "sold-out",
            Self::LimitReached { .. } => "limit-reached",
            Self::UnknownEvent { .. } => "unknown-event",
            Self::MixedCurrencies { .. } => "mixed-currencies",
            Self::AmountOverflow { .. } => "invalid-request",
            Self::PaymentDeclined => "payment-declined",
            Self::HoldExpired => "hold-expired",
            Self::Cancelled => "purchase-cancelled",
            Self::Refused { .. } => "purchase-refused",
            Self::Busy => "busy",
        }
    }
}
