//! Checkout's bodies (DESIGN §5.4).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::billing::Card;
use crate::inventory::Ticket;
use crate::{Buyer, Cart, Money, PaymentKey, PurchaseId, Strategy};

/// `POST /v1/purchases`, with an `Idempotency-Key` header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BuyTickets {
    /// Who buys.
    pub buyer: Buyer,
    /// What, all or nothing.
    pub items: Cart,
    /// With what.
    pub card: Card,
}

/// Where a purchase stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PurchaseStatus {
    /// Somebody is at it: the request, or the recovery worker.
    Pending,
    /// The tickets are the buyer's, the money is taken.
    Completed,
    /// It ended without tickets and without a charge.
    Rejected,
    /// It was completed and then cancelled: refunded. The tickets stay out of sale.
    Cancelled,
}

/// Where the time of a purchase went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PurchaseTimings {
    /// From the request's arrival to its answer.
    pub total_ms: f64,
    /// Waiting for locks, all services together.
    pub lock_wait_ms: f64,
    /// Inside critical sections, all services together.
    pub section_ms: f64,
    /// Authorizing and capturing.
    pub payment_ms: f64,
    /// When inventory had read the stock for this purchase. With `written_at` it shows who overtook whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<DateTime<Utc>>,
    /// When inventory had written the stock for this purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<DateTime<Utc>>,
}

/// One purchase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PurchaseView {
    /// The purchase; also the id of its hold and of its payment.
    pub id: PurchaseId,
    /// Where it stands.
    pub status: PurchaseStatus,
    /// Who buys.
    pub buyer: Buyer,
    /// What.
    pub items: Cart,
    /// The tickets of a completed purchase.
    #[serde(default)]
    pub tickets: Vec<Ticket>,
    /// What it costs, once the hold has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// Why it was rejected: the slug of the problem (`sold-out`, `payment-declined`, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where the time went.
    #[serde(default)]
    pub timings: PurchaseTimings,
}

/// `GET /v1/purchases`: newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PurchaseList {
    /// At most the `limit` that was asked for.
    pub purchases: Vec<PurchaseView>,
}

/// One purchase in checkout's book, for the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PurchaseRecord {
    /// The purchase.
    pub id: PurchaseId,
    /// Who buys.
    pub buyer: Buyer,
    /// The caller's key.
    pub idempotency_key: String,
    /// Where it stands.
    pub status: PurchaseStatus,
    /// Why it was rejected.
    pub reason: Option<String>,
    /// What it costs, in minor units, all events of the cart together.
    pub amount_minor: Option<i64>,
    /// Tickets of this event in it.
    pub quantity: i64,
    /// Tickets of all events in it.
    pub quantity_all: i64,
    /// How it was guarded.
    pub strategy: Strategy,
    /// How its payment keys were made.
    pub payment_key: PaymentKey,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it last moved.
    pub updated_at: DateTime<Utc>,
}

/// `GET /v1/audit-records/{event_id}` of checkout: every purchase whose cart names the event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckoutRecords {
    /// In the order in which they began.
    pub purchases: Vec<PurchaseRecord>,
    /// Writes refused because a newer fencing token had been seen.
    pub stale_tokens_rejected: i64,
}
