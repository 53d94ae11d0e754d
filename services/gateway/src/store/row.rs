//! A ledger line as the database keeps it, and back.

use chrono::{DateTime, Utc};
use ticketing_types::billing::Card;
use ticketing_types::gateway::EntryKind;
use ticketing_types::{Currency, Invalid, Money, PaymentId};

use crate::domain::book::Line;

#[derive(sqlx::FromRow)]
pub(super) struct LineRow {
    entry_id: String,
    merchant_key: String,
    reference: String,
    kind: String,
    card: Option<String>,
    authorization_id: Option<String>,
    amount_minor: i64,
    currency: String,
    at: DateTime<Utc>,
}

const KINDS: [EntryKind; 5] = [
    EntryKind::Authorize,
    EntryKind::Decline,
    EntryKind::Capture,
    EntryKind::Void,
    EntryKind::Refund,
];

pub(super) fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Authorize => "authorize",
        EntryKind::Decline => "decline",
        EntryKind::Capture => "capture",
        EntryKind::Void => "void",
        EntryKind::Refund => "refund",
    }
}

impl TryFrom<LineRow> for Line {
    type Error = sqlx::Error;

    fn try_from(row: LineRow) -> sqlx::Result<Self> {
        let kind = KINDS.into_iter().find(|kind| kind_name(*kind) == row.kind);
        let card = row
            .card
            .map(|name| Card::try_from(name).map_err(|_| unreadable("card")));
        let money = |row_currency: &str| -> Result<Money, Invalid> {
            Money::new(row.amount_minor, Currency::parse(row_currency)?)
        };
        Ok(Self {
            id: row.entry_id,
            key: row.merchant_key,
            reference: PaymentId::parse(row.reference).map_err(|_| unreadable("reference"))?,
            kind: kind.ok_or_else(|| unreadable("kind"))?,
            card: card.transpose()?,
            authorization_id: row.authorization_id,
            amount: money(&row.currency).map_err(|_| unreadable("amount"))?,
            at: row.at,
        })
    }
}

/// Something that this program cannot have written.
fn unreadable(column: &str) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: "not a value of this version".into(),
    }
}
