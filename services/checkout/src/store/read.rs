//! The statements of those who only look.

use service_db::with_reader;
use sqlx::types::Json;
use ticketing_types::checkout::{CheckoutRecords, PurchaseRecord};
use ticketing_types::{Buyer, EventId, PurchaseId};

use super::row::{PurchaseRow, columns, unreadable, word};
use super::{Store, again};
use crate::domain::purchase::{FinalAnswer, Purchase};

const GET: &str = concat!("select ", columns!(), " from purchase where purchase_id = $1");

/// Ids are UUIDv7: their order is that of time.
const OF_BUYER: &str = concat!(
    "select ",
    columns!(),
    " from purchase where buyer = $1 order by purchase_id desc limit $2"
);

const NEWEST: &str = concat!(
    "select ",
    columns!(),
    " from purchase order by purchase_id desc limit $1"
);

const ANSWER: &str = "select http_status, content_type, body from answer where purchase_id = $1";

const AUDIT: &str = "select p.purchase_id, p.buyer, p.idempotency_key, p.status, p.reason, p.amount_minor, \
     i.quantity, p.items, p.strategy, p.payment_key, p.created_at, p.updated_at \
     from purchase_item i join purchase p on p.purchase_id = i.purchase_id \
     where i.event_id = $1 order by p.created_at, p.purchase_id";

const STALE_WRITES: &str = "select count(*) from stale_write where event_id = $1";

#[derive(sqlx::FromRow)]
struct AnswerRow {
    http_status: i64,
    content_type: String,
    body: String,
}

#[derive(sqlx::FromRow)]
struct AuditRow {
    purchase_id: String,
    buyer: String,
    idempotency_key: String,
    status: String,
    reason: Option<String>,
    amount_minor: Option<i64>,
    quantity: i64,
    items: Json<ticketing_types::Cart>,
    strategy: String,
    payment_key: String,
    created_at: chrono::DateTime<chrono::Utc>,
    updated_at: chrono::DateTime<chrono::Utc>,
}

impl Store {
    /// One purchase.
    pub async fn get(&self, id: &PurchaseId) -> sqlx::Result<Option<Purchase>> {
        let row: Option<PurchaseRow> = again(|| async move {
            with_reader!(self.db, c => sqlx::query_as(GET).bind(id.as_str()).fetch_optional(c).await)
        })
        .await?;
        row.map(Purchase::try_from).transpose()
    }

    /// The newest purchases, of one buyer or of all.
    pub async fn list(&self, buyer: Option<&Buyer>, limit: u32) -> sqlx::Result<Vec<Purchase>> {
        let limit = i64::from(limit);
        let rows: Vec<PurchaseRow> = again(|| async move {
            match buyer {
                Some(buyer) => with_reader!(self.db, c => {
                    sqlx::query_as(OF_BUYER).bind(buyer.as_str()).bind(limit).fetch_all(c).await
                }),
                None => with_reader!(self.db, c => sqlx::query_as(NEWEST).bind(limit).fetch_all(c).await),
            }
        })
        .await?;
        rows.into_iter().map(Purchase::try_from).collect()
    }

    /// What the buyer was answered, once a purchase is over.
    pub async fn answer(&self, id: &PurchaseId) -> sqlx::Result<Option<FinalAnswer>> {
        let row: Option<AnswerRow> = again(|| async move {
            with_reader!(self.db, c => sqlx::query_as(ANSWER).bind(id.as_str()).fetch_optional(c).await)
        })
        .await?;
        row.map(|row| {
            Ok(FinalAnswer {
                http_status: u16::try_from(row.http_status).map_err(unreadable)?,
                content_type: row.content_type,
                body: row.body,
            })
        })
        .transpose()
    }

    /// Every purchase whose cart names the event, in the order in which they began.
    pub async fn records(&self, event_id: &EventId) -> sqlx::Result<CheckoutRecords> {
        let rows: Vec<AuditRow> = again(|| async move {
            with_reader!(self.db, c => sqlx::query_as(AUDIT).bind(event_id.as_str()).fetch_all(c).await)
        })
        .await?;
        let stale_tokens_rejected: i64 = again(|| async move {
            with_reader!(self.db, c => sqlx::query_scalar(STALE_WRITES).bind(event_id.as_str()).fetch_one(c).await)
        })
        .await?;
        let purchases = rows
            .into_iter()
            .map(PurchaseRecord::try_from)
            .collect::<sqlx::Result<_>>()?;
        Ok(CheckoutRecords {
            purchases,
            stale_tokens_rejected,
        })
    }
}

impl TryFrom<AuditRow> for PurchaseRecord {
    type Error = sqlx::Error;

    fn try_from(row: AuditRow) -> sqlx::Result<Self> {
        let quantity_all: u32 = row.items.0.by_event().into_values().sum();
        Ok(Self {
            id: PurchaseId::parse(row.purchase_id).map_err(unreadable)?,
            buyer: Buyer::parse(row.buyer).map_err(unreadable)?,
            idempotency_key: row.idempotency_key,
            status: word(row.status)?,
            reason: row.reason,
            amount_minor: row.amount_minor,
            quantity: row.quantity,
            quantity_all: i64::from(quantity_all),
            strategy: word(row.strategy)?,
            payment_key: word(row.payment_key)?,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}
