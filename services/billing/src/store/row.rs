//! Rows as the database keeps them, and back into values that cannot be wrong.

use chrono::{DateTime, Utc};
use ticketing_types::billing::{AuthorizePayment, Card};
use ticketing_types::{Buyer, Currency, Money, PaymentId, RefundId};

use super::refunds::{Refund, RefundStatus};
use crate::domain::payment::{Payment, Status};

#[derive(sqlx::FromRow)]
pub(super) struct PaymentRow {
    attempt_id: String,
    payment_id: String,
    strategy: String,
    buyer: Option<String>,
    card: Option<String>,
    amount_minor: Option<i64>,
    currency: Option<String>,
    status: String,
    authorization_id: Option<String>,
    capture_id: Option<String>,
    captured_minor: i64,
    refunded_minor: i64,
    fencing_token: Option<i64>,
    version: i64,
    claimed_until: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl TryFrom<PaymentRow> for Payment {
    type Error = sqlx::Error;

    fn try_from(row: PaymentRow) -> sqlx::Result<Self> {
        let asked = match (row.buyer, row.card, row.amount_minor, row.currency) {
            (Some(buyer), Some(card), Some(amount_minor), Some(currency)) => Some(AuthorizePayment {
                buyer: Buyer::parse(buyer).map_err(|_| unreadable("buyer"))?,
                card: Card::try_from(card).map_err(|_| unreadable("card"))?,
                amount: money(amount_minor, &currency)?,
            }),
            _ => None,
        };
        Ok(Self {
            attempt_id: row.attempt_id,
            payment_id: PaymentId::parse(row.payment_id).map_err(|_| unreadable("payment_id"))?,
            strategy: row.strategy.parse().map_err(|_| unreadable("strategy"))?,
            asked,
            status: Status::ALL
                .into_iter()
                .find(|status| status.name() == row.status)
                .ok_or_else(|| unreadable("status"))?,
            authorization_id: row.authorization_id,
            capture_id: row.capture_id,
            captured_minor: row.captured_minor,
            refunded_minor: row.refunded_minor,
            fencing_token: row.fencing_token,
            version: row.version,
            claimed_until: row.claimed_until,
            created_at: row.created_at,
        })
    }
}

#[derive(sqlx::FromRow)]
pub(super) struct RefundRow {
    payment_id: String,
    refund_id: String,
    attempt_id: String,
    amount_minor: i64,
    currency: String,
    refundable_minor: i64,
    status: String,
    tries: i32,
}

impl TryFrom<RefundRow> for Refund {
    type Error = sqlx::Error;

    fn try_from(row: RefundRow) -> sqlx::Result<Self> {
        Ok(Self {
            payment_id: PaymentId::parse(row.payment_id).map_err(|_| unreadable("payment_id"))?,
            refund_id: RefundId::parse(row.refund_id).map_err(|_| unreadable("refund_id"))?,
            attempt_id: row.attempt_id,
            amount: money(row.amount_minor, &row.currency)?,
            refundable_minor: row.refundable_minor,
            status: RefundStatus::parse(&row.status).ok_or_else(|| unreadable("status"))?,
            tries: row.tries,
        })
    }
}

fn money(amount_minor: i64, currency: &str) -> sqlx::Result<Money> {
    let currency = Currency::parse(currency).map_err(|_| unreadable("currency"))?;
    Money::new(amount_minor, currency).map_err(|_| unreadable("amount_minor"))
}

/// Something that this program cannot have written.
fn unreadable(column: &str) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: "not a value of this version".into(),
    }
}
