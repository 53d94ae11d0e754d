//! Refunds: reserve, finish, give back.
//!
//! Σ refunds ≤ captured needs no lock: it is one conditional update on the payment's row, in the transaction
//! that writes the refund. Two at once take turns at that row on both engines, and the second one compares
//! with what the first one left.

use chrono::{DateTime, Utc};
use service_db::{Tx, with_reader, with_tx};
use ticketing_types::{Money, PaymentId, RefundId};

use super::row::RefundRow;
use super::{Store, patiently};
use crate::domain::payment::Payment;

/// Where a refund stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefundStatus {
    /// Reserved; the processor's answer is not known yet.
    Pending,
    Done,
    /// The processor would not.
    Refused,
}

impl RefundStatus {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Done, Self::Refused]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

/// One refund: one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refund {
    pub(crate) payment_id: PaymentId,
    pub(crate) refund_id: RefundId,
    pub(crate) attempt_id: String,
    pub(crate) amount: Money,
    /// What could still be given back after it: part of the answer, and the same for every repeat.
    pub(crate) refundable_minor: i64,
    pub(crate) status: RefundStatus,
    /// How often the settling worker has asked the processor in vain.
    pub(crate) tries: i32,
}

/// What became of the wish to reserve a refund.
#[derive(Debug)]
pub(crate) enum Reserved {
    New(Refund),
    /// This id was used before.
    Existing(Refund),
    TooMuch {
        refundable_minor: i64,
    },
}

macro_rules! select_refund {
    ($tail:literal) => {
        concat!(
            "select payment_id, refund_id, attempt_id, amount_minor, currency, refundable_minor, status, ",
            "tries from refund ",
            $tail
        )
    };
}

impl Store {
    /// Writes the refund and takes its amount from what can be given back, or neither.
    pub(crate) async fn reserve_refund(
        &self,
        payment: &Payment,
        refund_id: &RefundId,
        amount: Money,
    ) -> sqlx::Result<Reserved> {
        patiently(|| self.try_reserve_refund(payment, refund_id, amount)).await
    }

    async fn try_reserve_refund(
        &self,
        payment: &Payment,
        refund_id: &RefundId,
        amount: Money,
    ) -> sqlx::Result<Reserved> {
        const TAKE: &str = "update payment \
            set refunded_minor = refunded_minor + $2, version = version + 1, updated_at = $3 \
            where attempt_id = $1 and status = 'captured' and $2 <= captured_minor - refunded_minor \
            returning captured_minor - refunded_minor";
        const LEFT: &str = "select captured_minor - refunded_minor from payment where attempt_id = $1";
        const FIND: &str = select_refund!("where payment_id = $1 and refund_id = $2");
        let mut tx = self.db.begin().await?;
        // The payment's row first: whoever refunds this payment waits here, whatever the refund's id, so that
        // a repeat that arrives meanwhile finds the row of the first.
        let left: Option<(i64,)> = with_tx!(tx, c => sqlx::query_as(TAKE)
            .bind(&payment.attempt_id)
            .bind(amount.amount_minor())
            .bind(Utc::now())
            .fetch_optional(c)
            .await
        )?;
        let existing: Option<RefundRow> = with_tx!(tx, c => sqlx::query_as(FIND)
            .bind(payment.payment_id.as_str())
            .bind(refund_id.as_str())
            .fetch_optional(c)
            .await
        )?;
        if let Some(row) = existing {
            tx.rollback().await?;
            return Ok(Reserved::Existing(row.try_into()?));
        }
        let Some((refundable_minor,)) = left else {
            let (refundable_minor,): (i64,) = with_tx!(tx, c =>
                sqlx::query_as(LEFT).bind(&payment.attempt_id).fetch_one(c).await
            )?;
            tx.rollback().await?;
            return Ok(Reserved::TooMuch { refundable_minor });
        };
        let refund = Refund {
            payment_id: payment.payment_id.clone(),
            refund_id: refund_id.clone(),
            attempt_id: payment.attempt_id.clone(),
            amount,
            refundable_minor,
            status: RefundStatus::Pending,
            tries: 0,
        };
        insert(&mut tx, &refund).await?;
        tx.commit().await?;
        Ok(Reserved::New(refund))
    }

    /// The processor gave the money back.
    pub(crate) async fn finish_refund(&self, refund: &Refund, refund_entry_id: &str) -> sqlx::Result<()> {
        patiently(|| async {
            let mut tx = self.db.begin().await?;
            settle(&mut tx, refund, RefundStatus::Done, Some(refund_entry_id)).await?;
            tx.commit().await
        })
        .await
    }

    /// The processor would not: the amount can be given back again.
    pub(crate) async fn give_back_refund(&self, refund: &Refund) -> sqlx::Result<()> {
        const GIVE_BACK: &str = "update payment \
            set refunded_minor = refunded_minor - $2, version = version + 1, updated_at = $3 \
            where attempt_id = $1";
        patiently(|| async {
            let mut tx = self.db.begin().await?;
            // Only whoever ends the refund gives its amount back, or it would be given back twice.
            if settle(&mut tx, refund, RefundStatus::Refused, None).await? {
                with_tx!(tx, c => sqlx::query(GIVE_BACK)
                    .bind(&refund.attempt_id)
                    .bind(refund.amount.amount_minor())
                    .bind(Utc::now())
                    .execute(c)
                    .await
                    .map(|_| ())
                )?;
            }
            tx.commit().await
        })
        .await
    }

    /// Refunds that are pending since before `before` (somebody stopped in the middle) and whose next try is due.
    pub(crate) async fn pending_refunds_since(
        &self,
        before: DateTime<Utc>,
        limit: i64,
    ) -> sqlx::Result<Vec<Refund>> {
        const SQL: &str = select_refund!(
            "where status = 'pending' and updated_at < $1 and (next_try_at is null or next_try_at <= $2) \
            order by coalesce(next_try_at, updated_at) limit $3"
        );
        let rows: Vec<RefundRow> = with_reader!(self.db, c => sqlx::query_as(SQL)
            .bind(before)
            .bind(Utc::now())
            .bind(limit)
            .fetch_all(c)
            .await
        )?;
        rows.into_iter().map(Refund::try_from).collect()
    }

    /// The processor was asked in vain once more. Of two workers that were, the second one changes nothing.
    pub(crate) async fn postpone_refund(
        &self,
        refund: &Refund,
        next_try_at: DateTime<Utc>,
    ) -> sqlx::Result<()> {
        const SQL: &str = "update refund set tries = tries + 1, next_try_at = $4 \
            where payment_id = $1 and refund_id = $2 and status = 'pending' and tries = $3";
        patiently(|| async {
            let mut tx = self.db.begin().await?;
            with_tx!(tx, c => sqlx::query(SQL)
                .bind(refund.payment_id.as_str())
                .bind(refund.refund_id.as_str())
                .bind(refund.tries)
                .bind(next_try_at)
                .execute(c)
                .await
                .map(|_| ())
            )?;
            tx.commit().await
        })
        .await
    }
}

async fn insert(tx: &mut Tx, refund: &Refund) -> sqlx::Result<()> {
    const SQL: &str = "insert into refund (payment_id, refund_id, attempt_id, amount_minor, currency, \
        refundable_minor, status, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $8)";
    with_tx!(tx, c => sqlx::query(SQL)
        .bind(refund.payment_id.as_str())
        .bind(refund.refund_id.as_str())
        .bind(&refund.attempt_id)
        .bind(refund.amount.amount_minor())
        .bind(refund.amount.currency().code())
        .bind(refund.refundable_minor)
        .bind(refund.status.name())
        .bind(Utc::now())
        .execute(c)
        .await
        .map(|_| ())
    )
}

/// Ends a pending refund; `false` if somebody else did.
async fn settle(
    tx: &mut Tx,
    refund: &Refund,
    status: RefundStatus,
    refund_entry_id: Option<&str>,
) -> sqlx::Result<bool> {
    const SQL: &str = "update refund set status = $3, gateway_entry_id = $4, updated_at = $5 \
        where payment_id = $1 and refund_id = $2 and status = 'pending'";
    with_tx!(tx, c => sqlx::query(SQL)
        .bind(refund.payment_id.as_str())
        .bind(refund.refund_id.as_str())
        .bind(status.name())
        .bind(refund_entry_id)
        .bind(Utc::now())
        .execute(c)
        .await
        .map(|done| done.rows_affected() > 0)
    )
}
