//! A purchase's row, and what it means.

use chrono::{DateTime, Utc};
use service_kit::IdempotencyKey;
use sqlx::types::Json;
use ticketing_types::checkout::{PurchaseStatus, PurchaseTimings};
use ticketing_types::{Buyer, Cart, PurchaseId};

use crate::domain::purchase::{Order, Purchase, Terms};
use crate::domain::saga::Saga;

/// The columns of [`PurchaseRow`], for `concat!`.
macro_rules! columns {
    () => {
        "purchase_id, buyer, idempotency_key, fingerprint, items, card, strategy, payment_key, traceparent, \
         saga, timings, cancel_requested, created_at"
    };
}
pub(super) use columns;

/// A row of `purchase`, without what is only searched for.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct PurchaseRow {
    purchase_id: String,
    buyer: String,
    idempotency_key: String,
    fingerprint: String,
    items: Json<Cart>,
    card: String,
    strategy: String,
    payment_key: String,
    traceparent: Option<String>,
    saga: Json<Saga>,
    timings: Json<PurchaseTimings>,
    cancel_requested: bool,
    created_at: DateTime<Utc>,
}

impl TryFrom<PurchaseRow> for Purchase {
    type Error = sqlx::Error;

    /// Nothing here can fail for a row that this service wrote.
    fn try_from(row: PurchaseRow) -> sqlx::Result<Self> {
        let key = IdempotencyKey::parse(&row.idempotency_key).map_err(unreadable)?;
        Ok(Self {
            id: PurchaseId::parse(row.purchase_id).map_err(unreadable)?,
            order: Order {
                buyer: Buyer::parse(row.buyer).map_err(unreadable)?,
                idempotency_key: key.as_str().to_owned(),
                fingerprint: row.fingerprint,
                items: row.items.0,
                card: word(row.card)?,
            },
            terms: Terms {
                strategy: word(row.strategy)?,
                payment_key: word(row.payment_key)?,
                traceparent: row.traceparent,
            },
            saga: row.saga.0,
            timings: row.timings.0,
            cancel_requested: row.cancel_requested,
            created_at: row.created_at,
        })
    }
}

/// An enum's name on the wire is also its name in the book.
pub(super) fn word<T: serde::de::DeserializeOwned>(text: String) -> sqlx::Result<T> {
    serde_json::from_value(text.into()).map_err(unreadable)
}

/// The name of a status in the book.
pub(super) fn status_name(status: PurchaseStatus) -> &'static str {
    match status {
        PurchaseStatus::Pending => "pending",
        PurchaseStatus::Completed => "completed",
        PurchaseStatus::Rejected => "rejected",
        PurchaseStatus::Cancelled => "cancelled",
    }
}

pub(super) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}
