//! The card gateway's bodies: the stand-in for a card processor, with a ledger of its own. It tells a retry
//! from a second charge by the key alone, as processors do: the same key is the same charge, a new key is a
//! new charge.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::billing::Card;
use crate::{Money, PaymentId};

/// `POST /v1/authorizations`: reserve money on a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Authorize {
    /// The merchant's idempotency key, 1 to 255 bytes.
    pub key: String,
    /// What the merchant calls it: the payment's id.
    pub reference: PaymentId,
    /// With what.
    pub card: Card,
    /// How much.
    pub amount: Money,
}

/// `POST /v1/captures`: take reserved money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Capture {
    /// The merchant's idempotency key.
    pub key: String,
    /// What the merchant calls it.
    pub reference: PaymentId,
    /// The authorization's id, as the gateway gave it.
    pub authorization_id: String,
    /// How much.
    pub amount: Money,
}

/// `POST /v1/voids`: give reserved money back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Void {
    /// The merchant's idempotency key.
    pub key: String,
    /// What the merchant calls it.
    pub reference: PaymentId,
    /// The authorization; without it, every open authorization of the reference, those to come included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_id: Option<String>,
}

/// `POST /v1/refunds`: give taken money back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Refund {
    /// The merchant's idempotency key.
    pub key: String,
    /// What the merchant calls it.
    pub reference: PaymentId,
    /// How much.
    pub amount: Money,
}

/// What a line of the ledger says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Money was reserved.
    Authorize,
    /// A card was declined; nothing was reserved.
    Decline,
    /// Money was taken.
    Capture,
    /// A reservation was given back.
    Void,
    /// Taken money was given back.
    Refund,
}

/// One line of the ledger; also the answer to every call above.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntry {
    /// The gateway's own id of this line.
    pub id: String,
    /// The merchant's key.
    pub key: String,
    /// What the merchant calls it.
    pub reference: PaymentId,
    /// What happened.
    pub kind: EntryKind,
    /// How much.
    pub amount: Money,
    /// When.
    pub at: DateTime<Utc>,
}

/// `POST /v1/ledger/lookup`: up to 1,000 references at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LedgerLookup {
    /// Which references.
    pub references: Vec<PaymentId>,
}

/// What the ledger says of one reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LedgerTotals {
    /// The reference.
    pub reference: PaymentId,
    /// How many authorizations.
    pub authorizations: i64,
    /// How many captures.
    pub captures: i64,
    /// Σ captures, in minor units.
    pub captured_minor: i64,
    /// Σ refunds, in minor units.
    pub refunded_minor: i64,
}

/// The answer to [`LedgerLookup`]: references the gateway never heard of are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ledger {
    /// One entry per reference.
    pub totals: Vec<LedgerTotals>,
}
