//! The statements of a driver. Each write of a drive is conditional on the claim's number.

use chrono::{DateTime, Utc};
use service_db::{Tx, with_reader, with_tx};
use sqlx::types::Json;
use ticketing_types::PurchaseId;
use ticketing_types::checkout::PurchaseStatus;

use super::row::{PurchaseRow, columns, status_name};
use super::{Store, again};
use crate::domain::purchase::{FinalAnswer, Purchase, now};

/// The right to drive one purchase: like a fencing token, a later claim makes an earlier one powerless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Of which purchase.
    pub id: PurchaseId,
    /// Which claim of it.
    pub claim_no: i64,
}

impl Claim {
    /// The claim that a purchase is inserted with.
    pub(super) fn first(id: &PurchaseId) -> Self {
        Self {
            id: id.clone(),
            claim_no: 1,
        }
    }
}

/// What came of writing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It stands.
    Kept {
        /// Somebody wants the purchase called off.
        cancel_requested: bool,
    },
    /// Somebody else claimed the purchase; nothing was written.
    Overtaken,
}

/// What a purchase is called off by is settled once it is rejected or cancelled ($9).
const RECORD: &str = "update purchase set status = $3, reason = $4, amount_minor = $5, currency = $6, saga = $7, \
     timings = $8, cancel_requested = cancel_requested and not $9, claimed_by = $10, claimed_until = $11, \
     updated_at = $12 where purchase_id = $1 and claim_no = $2 returning cancel_requested";

/// The first answer stays.
const KEEP_ANSWER: &str = "insert into answer (purchase_id, http_status, content_type, body, created_at) \
     values ($1, $2, $3, $4, $5) on conflict (purchase_id) do nothing";

const CLAIM: &str = concat!(
    "update purchase set claimed_by = $2, claimed_until = $3, claim_no = claim_no + 1, updated_at = $4 \
     where purchase_id = $1 and (status = 'pending' or cancel_requested) and claimed_until <= $4 \
     returning claim_no, ",
    columns!()
);

const STALE: &str = "select purchase_id from purchase where (status = 'pending' or cancel_requested) \
     and claimed_until <= $1 order by claimed_until limit $2";

const RENEW: &str = "update purchase set claimed_until = $1 where claimed_by = $2 \
     and (status = 'pending' or cancel_requested) and updated_at > $3";

const GIVE_UP: &str = "update purchase set claimed_by = null, claimed_until = $3 \
     where purchase_id = $1 and claim_no = $2 and (status = 'pending' or cancel_requested)";

const REQUEST_CANCEL: &str = "update purchase set cancel_requested = true \
     where purchase_id = $1 and status in ('pending', 'completed')";

#[derive(sqlx::FromRow)]
struct ClaimedRow {
    claim_no: i64,
    #[sqlx(flatten)]
    purchase: PurchaseRow,
}

impl Store {
    /// Writes down where a purchase stands; when it is over, also what the buyer is answered, in the same
    /// transaction. May be called twice with the same: the second call changes nothing.
    pub async fn record(
        &self,
        claim: &Claim,
        purchase: &Purchase,
        answer: Option<&FinalAnswer>,
        at: DateTime<Utc>,
    ) -> sqlx::Result<Recorded> {
        let (saga, status) = (&purchase.saga, purchase.saga.status());
        let over = saga.next().is_none();
        let reason = saga.rejection().filter(|_| over).map(|why| why.slug());
        let amount = saga.amount();
        let (claimed_by, claimed_until) = match over {
            true => (None, at),
            false => (Some(&self.driving.claimed_by), at + self.driving.claim_ttl),
        };
        again(|| async move {
            let mut tx = self.db.begin().await?;
            let kept: Option<bool> = with_tx!(tx, c => {
                sqlx::query_scalar(RECORD)
                    .bind(claim.id.as_str())
                    .bind(claim.claim_no)
                    .bind(status_name(status))
                    .bind(reason)
                    .bind(amount.map(|amount| amount.amount_minor()))
                    .bind(amount.map(|amount| amount.currency().code()))
                    .bind(Json(saga))
                    .bind(Json(&purchase.timings))
                    .bind(matches!(status, PurchaseStatus::Rejected | PurchaseStatus::Cancelled))
                    .bind(claimed_by)
                    .bind(claimed_until)
                    .bind(at)
                    .fetch_optional(c)
                    .await
            })?;
            let Some(cancel_requested) = kept else {
                tx.rollback().await?;
                return Ok(Recorded::Overtaken);
            };
            if let Some(answer) = answer {
                with_tx!(tx, c => {
                    sqlx::query(KEEP_ANSWER)
                        .bind(claim.id.as_str())
                        .bind(i64::from(answer.http_status))
                        .bind(&answer.content_type)
                        .bind(&answer.body)
                        .bind(at)
                        .execute(c)
                        .await
                        .map(|_| ())
                })?;
            }
            tx.commit().await?;
            Ok(Recorded::Kept { cancel_requested })
        })
        .await
    }

    /// Claims an unfinished purchase whose claim has run out; `None` when there is nothing to claim. The saga
    /// comes back as one found in the book: how far its last driver came with the next step is not known.
    pub async fn claim(&self, id: &PurchaseId) -> sqlx::Result<Option<(Claim, Purchase)>> {
        let row = again(|| async move {
            let mut tx = self.db.begin().await?;
            let row = self.try_claim(&mut tx, id).await?;
            tx.commit().await?;
            Ok(row)
        })
        .await?;
        row.map(found_in_the_book).transpose()
    }

    async fn try_claim(&self, tx: &mut Tx, id: &PurchaseId) -> sqlx::Result<Option<ClaimedRow>> {
        let at = now();
        with_tx!(tx, c => {
            sqlx::query_as(CLAIM)
                .bind(id.as_str())
                .bind(&self.driving.claimed_by)
                .bind(at + self.driving.claim_ttl)
                .bind(at)
                .fetch_optional(c)
                .await
        })
    }

    /// Unfinished purchases whose claim has run out, the longest first.
    pub async fn stale(&self, limit: u32) -> sqlx::Result<Vec<PurchaseId>> {
        let ids: Vec<String> = with_reader!(self.db, c => {
            sqlx::query_scalar(STALE).bind(now()).bind(i64::from(limit)).fetch_all(c).await
        })?;
        ids.into_iter()
            .map(|id| PurchaseId::parse(id).map_err(super::row::unreadable))
            .collect()
    }

    /// Renews every claim of this process at once: a burst has a thousand of them.
    pub async fn renew(&self) -> sqlx::Result<u64> {
        let at = now();
        let mut tx = self.db.begin().await?;
        let renewed = with_tx!(tx, c => {
            sqlx::query(RENEW)
                .bind(at + self.driving.claim_ttl)
                .bind(&self.driving.claimed_by)
                .bind(at - self.driving.silence_max)
                .execute(c)
                .await
                .map(|done| done.rows_affected())
        })?;
        tx.commit().await?;
        Ok(renewed)
    }

    /// Gives a claim back: the purchase may be claimed again after a breath. If that fails, the claim runs out by
    /// itself.
    pub async fn give_up(&self, claim: &Claim) {
        let given = again(|| async move {
            let mut tx = self.db.begin().await?;
            with_tx!(tx, c => {
                sqlx::query(GIVE_UP)
                    .bind(claim.id.as_str())
                    .bind(claim.claim_no)
                    .bind(now() + self.driving.claim_ttl / 5)
                    .execute(c)
                    .await
                    .map(|_| ())
            })?;
            tx.commit().await
        })
        .await;
        if let Err(error) = given {
            tracing::warn!(purchase.id = %claim.id, %error, "a claim could not be given back");
        }
    }

    /// Writes down that a purchase is to be called off, and claims it if nobody drives it; both at once, or the
    /// recovery worker would often be faster.
    pub async fn call_off(&self, id: &PurchaseId) -> sqlx::Result<Option<(Claim, Purchase)>> {
        let row = again(|| async move {
            let mut tx = self.db.begin().await?;
            with_tx!(tx, c => {
                sqlx::query(REQUEST_CANCEL).bind(id.as_str()).execute(c).await.map(|_| ())
            })?;
            let row = self.try_claim(&mut tx, id).await?;
            tx.commit().await?;
            Ok(row)
        })
        .await?;
        row.map(found_in_the_book).transpose()
    }
}

fn found_in_the_book(row: ClaimedRow) -> sqlx::Result<(Claim, Purchase)> {
    let mut purchase = Purchase::try_from(row.purchase)?;
    purchase.saga = purchase.saga.resume();
    let claim = Claim {
        id: purchase.id.clone(),
        claim_no: row.claim_no,
    };
    Ok((claim, purchase))
}
