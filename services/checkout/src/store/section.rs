//! The statements of the critical section `purchase/<hash of buyer and key>`.
//!
//! Four rules, four inserts. `Plain` has no condition and no index in its way: what the section decided is what
//! is written, twice if two decided it. `Fenced` adds the fencing token's condition. The other two *are* their
//! own guard: insert, and if the place is taken do nothing.

use guard::WriteRule;
use service_db::{is_unique_violation, with_reader, with_tx};
use sqlx::types::Json;
use ticketing_types::{Buyer, PurchaseId};

use super::row::{PurchaseRow, columns};
use super::{Claim, Store, again};
use crate::domain::purchase::{Purchase, now};

/// What came of the section's write.
#[derive(Debug)]
pub enum Written {
    /// It stands, claimed by this process.
    Claimed(Claim),
    /// Refused: the row of this scope was written under a newer fencing token.
    Stale,
    /// Refused: somebody else wrote between the look and the write.
    Beaten,
}

/// Several rows can carry one key only under strategies that guard nothing. The one that holds an answer, or will,
/// comes before one that ended without.
const FIND: &str = concat!(
    "select ",
    columns!(),
    " from purchase where buyer = $1 and idempotency_key = $2 \
     order by case when reason = 'busy' then 1 else 0 end, created_at, purchase_id limit 1"
);

macro_rules! insert_into {
    () => {
        "insert into purchase (purchase_id, buyer, idempotency_key, fingerprint, items, card, strategy, payment_key, \
         traceparent, guarded, fencing_token, status, saga, timings, claimed_by, claimed_until, claim_no, \
         created_at, updated_at) "
    };
}
macro_rules! values {
    () => {
        "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending', $12, $13, $14, $15, 1, $16, $17"
    };
}

const INSERT_PLAIN: &str = concat!(insert_into!(), "values (", values!(), ")");

/// "… and fencing_token <= $token on the row of the same scope": the scope is the key, and a later holder of its
/// lock leaves a row with its own, higher token.
const INSERT_FENCED: &str = concat!(
    insert_into!(),
    "select ",
    values!(),
    " where not exists (select 1 from purchase \
     where buyer = $2 and idempotency_key = $3 and fencing_token > $11)"
);

const INSERT_IF_FREE: &str = concat!(
    insert_into!(),
    "values (",
    values!(),
    ") on conflict (buyer, idempotency_key) where guarded do nothing"
);

const INSERT_ITEM: &str = "insert into purchase_item (purchase_id, event_id, quantity) values ($1, $2, $3)";

/// A purchase that ended as busy starts again, under the new request's terms. The condition is the claim: of two
/// who start it again, one finds it `pending`.
const START_AGAIN: &str = "update purchase set status = 'pending', reason = null, strategy = $2, payment_key = $3, \
     traceparent = $4, guarded = $5, fencing_token = coalesce($6, fencing_token), saga = $7, timings = $8, \
     claimed_by = $9, claimed_until = $10, claim_no = claim_no + 1, created_at = $11, updated_at = $12 \
     where purchase_id = $1 and status = 'rejected' and reason = 'busy' \
     and ($6 is null or fencing_token is null or fencing_token <= $6) returning claim_no";

const NOTE_STALE: &str =
    "insert into stale_write (stale_write_id, event_id, fencing_token, at) values ($1, $2, $3, $4)";

impl Store {
    /// The look of the section: the purchase with this key, if there is one.
    pub async fn find(&self, buyer: &Buyer, idempotency_key: &str) -> sqlx::Result<Option<Purchase>> {
        let row: Option<PurchaseRow> = again(|| async move {
            with_reader!(self.db, c => {
                sqlx::query_as(FIND).bind(buyer.as_str()).bind(idempotency_key).fetch_optional(c).await
            })
        })
        .await?;
        row.map(Purchase::try_from).transpose()
    }

    /// The write of the section: a new purchase, claimed by this process.
    pub async fn insert(&self, purchase: &Purchase, rule: WriteRule) -> sqlx::Result<Written> {
        let written = match again(|| self.try_insert(purchase, rule)).await {
            // The last line of defence.
            Err(error) if is_unique_violation(&error) => Written::Beaten,
            result => result?,
        };
        if let Written::Beaten = written {
            // By ourselves, perhaps: a try whose commit went unanswered.
            let order = &purchase.order;
            let standing = self.find(&order.buyer, &order.idempotency_key).await?;
            if standing.is_some_and(|standing| standing.id == purchase.id) {
                return Ok(Written::Claimed(Claim::first(&purchase.id)));
            }
        }
        Ok(written)
    }

    async fn try_insert(&self, purchase: &Purchase, rule: WriteRule) -> sqlx::Result<Written> {
        let (statement, refused) = match rule {
            WriteRule::Plain => (INSERT_PLAIN, Written::Beaten),
            WriteRule::Fenced(_) => (INSERT_FENCED, Written::Stale),
            WriteRule::CompareVersion | WriteRule::Conditional => (INSERT_IF_FREE, Written::Beaten),
        };
        let (order, terms, at) = (&purchase.order, &purchase.terms, now());
        let mut tx = self.db.begin().await?;
        let inserted = with_tx!(tx, c => {
            sqlx::query(statement)
                .bind(purchase.id.as_str())
                .bind(order.buyer.as_str())
                .bind(&order.idempotency_key)
                .bind(&order.fingerprint)
                .bind(Json(&order.items))
                .bind(order.card.name())
                .bind(terms.strategy.name())
                .bind(terms.payment_key.name())
                .bind(&terms.traceparent)
                .bind(terms.strategy.guarded())
                .bind(rule.fencing_token())
                .bind(Json(&purchase.saga))
                .bind(Json(&purchase.timings))
                .bind(&self.driving.claimed_by)
                .bind(at + self.driving.claim_ttl)
                .bind(purchase.created_at)
                .bind(at)
                .execute(c)
                .await
                .map(|done| done.rows_affected())
        });
        let inserted = match inserted {
            Ok(inserted) => inserted,
            Err(error) => {
                tx.rollback().await?;
                return Err(error);
            }
        };
        if inserted == 0 {
            tx.rollback().await?;
            return Ok(refused);
        }
        for (event_id, quantity) in order.items.by_event() {
            with_tx!(tx, c => {
                sqlx::query(INSERT_ITEM)
                    .bind(purchase.id.as_str())
                    .bind(event_id.as_str())
                    .bind(i64::from(quantity))
                    .execute(c)
                    .await
                    .map(|_| ())
            })?;
        }
        tx.commit().await?;
        Ok(Written::Claimed(Claim::first(&purchase.id)))
    }

    /// The other write of the section: the purchase `id`, which ended as busy, starts again as `purchase`.
    pub async fn start_again(
        &self,
        id: &PurchaseId,
        purchase: &Purchase,
        rule: WriteRule,
    ) -> sqlx::Result<Written> {
        let (terms, at) = (&purchase.terms, now());
        let claim_no: sqlx::Result<Option<i64>> = again(|| async move {
            let mut tx = self.db.begin().await?;
            let claim_no = with_tx!(tx, c => {
                sqlx::query_scalar(START_AGAIN)
                    .bind(id.as_str())
                    .bind(terms.strategy.name())
                    .bind(terms.payment_key.name())
                    .bind(&terms.traceparent)
                    .bind(terms.strategy.guarded())
                    .bind(rule.fencing_token())
                    .bind(Json(&purchase.saga))
                    .bind(Json(&purchase.timings))
                    .bind(&self.driving.claimed_by)
                    .bind(at + self.driving.claim_ttl)
                    .bind(purchase.created_at)
                    .bind(at)
                    .fetch_optional(c)
                    .await
            })?;
            tx.commit().await?;
            Ok(claim_no)
        })
        .await;
        match claim_no {
            Ok(Some(claim_no)) => Ok(Written::Claimed(Claim {
                id: id.clone(),
                claim_no,
            })),
            Ok(None) => Ok(Written::Beaten),
            Err(error) if is_unique_violation(&error) => Ok(Written::Beaten),
            Err(error) => Err(error),
        }
    }

    /// Evidence for the audit: a write was refused because its fencing token was too old.
    pub async fn note_stale_write(&self, purchase: &Purchase, fencing_token: i64) -> sqlx::Result<()> {
        again(|| async move {
            let mut tx = self.db.begin().await?;
            for event_id in purchase.order.items.by_event().into_keys() {
                with_tx!(tx, c => {
                    sqlx::query(NOTE_STALE)
                        .bind(uuid::Uuid::now_v7().to_string())
                        .bind(event_id.as_str())
                        .bind(fencing_token)
                        .bind(now())
                        .execute(c)
                        .await
                        .map(|_| ())
                })?;
            }
            tx.commit().await
        })
        .await
    }
}
