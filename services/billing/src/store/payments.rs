//! Rows of payments: look, begin, advance.
//!
//! There is *one* update statement for all strategies. What differs between them is only its [`Condition`]:
//! nothing (`none`, `process`: the naive write), a fencing token and the status that was read (`raft`), the
//! version that was read (`optimistic`), or the status that was read (`atomic`). A condition that is absent is
//! null and does not apply.

use chrono::{DateTime, Utc};
use guard::WriteRule;
use service_db::{with_reader, with_tx};
use sqlx::QueryBuilder;
use ticketing_types::billing::{BillingRecords, PaymentRecord};
use ticketing_types::{PaymentId, Strategy};
use uuid::Uuid;

use super::row::PaymentRow;
use super::{Store, patiently};
use crate::domain::payment::{Payment, Status};

macro_rules! select_payment {
    ($tail:literal) => {
        concat!(
            "select attempt_id, payment_id, strategy, buyer, card, amount_minor, currency, status, ",
            "authorization_id, capture_id, captured_minor, refunded_minor, fencing_token, version, ",
            "claimed_until, created_at from payment ",
            $tail
        )
    };
}

/// What an update writes. The version grows and the time is taken with every one of them.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) status: Status,
    pub(crate) authorization_id: Option<String>,
    pub(crate) capture_id: Option<String>,
    pub(crate) captured_minor: Option<i64>,
    /// Who calls the processor has the row until then; nobody, once the answer is recorded.
    pub(crate) claimed_until: Option<DateTime<Utc>>,
}

impl Change {
    /// To this status, nobody at it.
    pub(crate) fn to(status: Status) -> Self {
        Self {
            status,
            authorization_id: None,
            capture_id: None,
            captured_minor: None,
            claimed_until: None,
        }
    }

    /// To this in-between status, with the call to the processor claimed until then.
    pub(crate) fn claim(status: Status, until: DateTime<Utc>) -> Self {
        Self {
            claimed_until: Some(until),
            ..Self::to(status)
        }
    }

    /// The row as it is after this change.
    pub(crate) fn applied_to(&self, row: &Payment, fencing_token: Option<i64>) -> Payment {
        Payment {
            status: self.status,
            authorization_id: self
                .authorization_id
                .clone()
                .or_else(|| row.authorization_id.clone()),
            capture_id: self.capture_id.clone().or_else(|| row.capture_id.clone()),
            captured_minor: self.captured_minor.unwrap_or(row.captured_minor),
            claimed_until: self.claimed_until,
            fencing_token: fencing_token.or(row.fencing_token),
            version: row.version + 1,
            ..row.clone()
        }
    }
}

/// What must still be true of a row for an update to go through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Condition {
    /// No newer token was seen (and from here on this one is).
    pub(crate) fencing_token: Option<i64>,
    pub(crate) version: Option<i64>,
    pub(crate) status: Option<Status>,
    /// Nobody has it claimed at that moment.
    pub(crate) unclaimed_at: Option<DateTime<Utc>>,
}

impl Condition {
    /// What the rule asks of a write to `row`, the row as it was read (or last written).
    pub(crate) fn of(rule: WriteRule, row: &Payment) -> Self {
        match rule {
            WriteRule::Plain => Self::default(),
            // The token alone refuses an older holder only *after* a newer one has written. Before that, an older
            // one can still write between the newer one's look and its write, which the status then tells.
            WriteRule::Fenced(_) => Self {
                fencing_token: rule.fencing_token(),
                status: Some(row.status),
                ..Self::default()
            },
            WriteRule::CompareVersion => Self {
                version: Some(row.version),
                ..Self::default()
            },
            WriteRule::Conditional => Self {
                status: Some(row.status),
                ..Self::default()
            },
        }
    }
}

impl Store {
    /// Every row of a payment, oldest first.
    pub(crate) async fn look(&self, payment_id: &PaymentId) -> sqlx::Result<Vec<Payment>> {
        const SQL: &str = select_payment!("where payment_id = $1 order by attempt_id");
        let rows: Vec<PaymentRow> =
            with_reader!(self.db, c => sqlx::query_as(SQL).bind(payment_id.as_str()).fetch_all(c).await)?;
        rows.into_iter().map(Payment::try_from).collect()
    }

    /// Writes the first row of a payment; `guarded`: under the unique index "one row per payment".
    /// `false`: that index has a row already.
    pub(crate) async fn begin(&self, row: &Payment, guarded: bool) -> sqlx::Result<bool> {
        patiently(|| self.try_begin(row, guarded)).await
    }

    async fn try_begin(&self, row: &Payment, guarded: bool) -> sqlx::Result<bool> {
        const SQL: &str = "insert into payment (attempt_id, payment_id, strategy, guarded, buyer, card, \
            amount_minor, currency, status, fencing_token, claimed_until, created_at, updated_at) \
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12) on conflict do nothing";
        let asked = row.asked.as_ref();
        let mut tx = self.db.begin().await?;
        let written = with_tx!(tx, c => sqlx::query(SQL)
            .bind(&row.attempt_id)
            .bind(row.payment_id.as_str())
            .bind(row.strategy.name())
            .bind(guarded)
            .bind(asked.map(|asked| asked.buyer.as_str()))
            .bind(asked.map(|asked| asked.card.name()))
            .bind(asked.map(|asked| asked.amount.amount_minor()))
            .bind(asked.map(|asked| asked.amount.currency().code()))
            .bind(row.status.name())
            .bind(row.fencing_token)
            .bind(row.claimed_until)
            .bind(row.created_at)
            .execute(c)
            .await
            .map(|done| done.rows_affected())
        )?;
        tx.commit().await?;
        Ok(written > 0)
    }

    /// Writes `change` if `condition` still holds; `false` if it does not.
    pub(crate) async fn advance(
        &self,
        attempt_id: &str,
        change: &Change,
        condition: Condition,
    ) -> sqlx::Result<bool> {
        patiently(|| self.try_advance(attempt_id, change, condition)).await
    }

    async fn try_advance(
        &self,
        attempt_id: &str,
        change: &Change,
        condition: Condition,
    ) -> sqlx::Result<bool> {
        const SQL: &str = "update payment set \
                status = $2, \
                authorization_id = coalesce($3, authorization_id), \
                capture_id = coalesce($4, capture_id), \
                captured_minor = coalesce($5, captured_minor), \
                claimed_until = $6, \
                fencing_token = coalesce($7, fencing_token), \
                version = version + 1, \
                updated_at = $8 \
            where attempt_id = $1 \
                and ($7 is null or fencing_token is null or fencing_token <= $7) \
                and ($9 is null or version = $9) \
                and ($10 is null or status = $10) \
                and ($11 is null or claimed_until is null or claimed_until <= $11)";
        let mut tx = self.db.begin().await?;
        let written = with_tx!(tx, c => sqlx::query(SQL)
            .bind(attempt_id)
            .bind(change.status.name())
            .bind(&change.authorization_id)
            .bind(&change.capture_id)
            .bind(change.captured_minor)
            .bind(change.claimed_until)
            .bind(condition.fencing_token)
            .bind(Utc::now())
            .bind(condition.version)
            .bind(condition.status.map(Status::name))
            .bind(condition.unclaimed_at)
            .execute(c)
            .await
            .map(|done| done.rows_affected())
        )?;
        tx.commit().await?;
        Ok(written > 0)
    }

    /// Rows whose in-between status is older than `before`: somebody stopped in the middle.
    /// Those of the strategies in `except` are passed over.
    pub(crate) async fn in_between_since(
        &self,
        before: DateTime<Utc>,
        except: &[Strategy],
        limit: i64,
    ) -> sqlx::Result<Vec<Payment>> {
        let rows: Vec<PaymentRow> = with_reader!(self.db, c => {
            let mut sql = QueryBuilder::new(select_payment!(
                "where status in ('authorizing', 'capturing', 'voiding') and updated_at < "
            ));
            sql.push_bind(before);
            for strategy in except {
                sql.push(" and strategy <> ").push_bind(strategy.name());
            }
            sql.push(" order by updated_at limit ").push_bind(limit);
            sql.build_query_as().fetch_all(c).await
        })?;
        rows.into_iter().map(Payment::try_from).collect()
    }

    /// Keeps evidence of a write that was refused for its old token.
    pub(crate) async fn note_stale_write(&self, payment_id: &PaymentId, token: i64) -> sqlx::Result<()> {
        const SQL: &str =
            "insert into stale_write (stale_write_id, payment_id, fencing_token, at) values ($1, $2, $3, $4)";
        patiently(|| async {
            let mut tx = self.db.begin().await?;
            with_tx!(tx, c => sqlx::query(SQL)
                .bind(Uuid::now_v7().to_string())
                .bind(payment_id.as_str())
                .bind(token)
                .bind(Utc::now())
                .execute(c)
                .await
                .map(|_| ())
            )?;
            tx.commit().await
        })
        .await
    }

    /// This book, for the audit: every row of these payments.
    pub(crate) async fn audit(&self, payment_ids: &[PaymentId]) -> sqlx::Result<BillingRecords> {
        if payment_ids.is_empty() {
            return Ok(BillingRecords {
                payments: Vec::new(),
                stale_tokens_rejected: 0,
            });
        }
        let rows: Vec<PaymentRow> = with_reader!(self.db, c => {
            let mut sql = QueryBuilder::new(select_payment!("where payment_id in ("));
            let mut list = sql.separated(", ");
            for payment_id in payment_ids {
                list.push_bind(payment_id.as_str());
            }
            sql.push(") order by attempt_id");
            sql.build_query_as().fetch_all(c).await
        })?;
        let (stale_tokens_rejected,): (i64,) = with_reader!(self.db, c => {
            let mut sql = QueryBuilder::new("select count(*) from stale_write where payment_id in (");
            let mut list = sql.separated(", ");
            for payment_id in payment_ids {
                list.push_bind(payment_id.as_str());
            }
            sql.push(")");
            sql.build_query_as().fetch_one(c).await
        })?;
        let payments = rows
            .into_iter()
            .map(|row| {
                let row = Payment::try_from(row)?;
                Ok(PaymentRecord {
                    id: row.payment_id,
                    status: row.status.on_the_wire(),
                    captured_minor: row.captured_minor,
                    refunded_minor: row.refunded_minor,
                })
            })
            .collect::<sqlx::Result<_>>()?;
        Ok(BillingRecords {
            payments,
            stale_tokens_rejected,
        })
    }
}
