//! Finding a hold.

use chrono::{DateTime, Utc};
use service_db::with_reader;
use ticketing_types::inventory::{HoldStatus, Ticket};
use ticketing_types::{Buyer, Cart, HoldId, Line, Money, Quantity};

use super::{Store, stored, stored_money};

/// A hold as it stands in the book.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredHold {
    pub(crate) id: HoldId,
    pub(crate) status: HoldStatus,
    pub(crate) expires_at: DateTime<Utc>,
    /// What was asked for; nothing if the id was closed before anybody asked.
    pub(crate) order: Option<StoredOrder>,
}

/// What a hold was asked for with, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredOrder {
    pub(crate) buyer: Buyer,
    pub(crate) items: Cart,
    /// As asked for: `None` means that the service's own setting was to be taken.
    pub(crate) ttl_ms: Option<i64>,
    pub(crate) amount: Money,
}

#[derive(sqlx::FromRow)]
struct HoldRow {
    status: String,
    buyer: Option<String>,
    ttl_ms: Option<i64>,
    amount_minor: Option<i64>,
    currency: Option<String>,
    expires_at: DateTime<Utc>,
}

/// The statuses as the database writes them.
pub(super) fn status(text: &str) -> sqlx::Result<HoldStatus> {
    Ok(match text {
        "placed" => HoldStatus::Placed,
        "confirmed" => HoldStatus::Confirmed,
        "releasing" => HoldStatus::Releasing,
        "released" => HoldStatus::Released,
        "expired" => HoldStatus::Expired,
        "closed" => HoldStatus::Closed,
        other => {
            return Err(sqlx::Error::Decode(
                format!("{other} is no status of a hold").into(),
            ));
        }
    })
}

impl Store {
    /// The hold of this id, if the id was ever used.
    pub(crate) async fn find_hold(&self, id: &HoldId) -> sqlx::Result<Option<StoredHold>> {
        let row: Option<HoldRow> = with_reader!(self.db, c => {
            sqlx::query_as(
                "select status, buyer, ttl_ms, amount_minor, currency, expires_at from hold where hold_id = $1",
            )
            .bind(id.as_str())
            .fetch_optional(c)
            .await
        })?;
        let Some(row) = row else { return Ok(None) };
        let order = match (&row.buyer, row.amount_minor, &row.currency) {
            (Some(buyer), Some(amount_minor), Some(currency)) => Some(StoredOrder {
                buyer: Buyer::parse(buyer).map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))?,
                items: self.lines(id).await?,
                ttl_ms: row.ttl_ms,
                amount: stored_money(amount_minor, currency)?,
            }),
            _ => None,
        };
        Ok(Some(StoredHold {
            id: id.clone(),
            status: status(&row.status)?,
            expires_at: row.expires_at,
            order,
        }))
    }

    /// The lines as they were sent.
    async fn lines(&self, id: &HoldId) -> sqlx::Result<Cart> {
        let rows: Vec<(String, i64)> = with_reader!(self.db, c => {
            sqlx::query_as("select event_id, quantity from hold_item where hold_id = $1 order by line")
                .bind(id.as_str())
                .fetch_all(c)
                .await
        })?;
        let lines: sqlx::Result<Vec<Line>> = rows
            .into_iter()
            .map(|(event_id, quantity)| {
                let quantity = Quantity::try_from(quantity.unsigned_abs())
                    .map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))?;
                Ok(Line {
                    event_id: stored(&event_id)?,
                    quantity,
                })
            })
            .collect();
        Cart::try_from(lines?).map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))
    }

    /// The tickets of a confirmed hold, in the order in which they were made.
    pub(crate) async fn tickets(&self, id: &HoldId) -> sqlx::Result<Vec<Ticket>> {
        let rows: Vec<(String, String)> = with_reader!(self.db, c => {
            sqlx::query_as("select ticket_id, event_id from ticket where hold_id = $1 order by ticket_id")
                .bind(id.as_str())
                .fetch_all(c)
                .await
        })?;
        rows.iter()
            .map(|(ticket_id, event_id)| {
                Ok(Ticket {
                    id: stored(ticket_id)?,
                    event_id: stored(event_id)?,
                })
            })
            .collect()
    }
}
