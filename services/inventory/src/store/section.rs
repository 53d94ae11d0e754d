//! The two halves of the critical section: what it reads, and the one transaction in which it writes.
//!
//! The four [`WriteRule`]s differ in one `where` clause (and `atomic` in computing from the row instead of from
//! what was read). Everything else, the hold, its lines, the order of the statements, is the same for all.
//!
//! Under a fence there is a second read, [`Store::read_announced`], which writes its token down where it reads.

use chrono::{DateTime, Utc};
use guard::WriteRule;
use service_db::{Tx, with_reader, with_tx};
use ticketing_types::{Buyer, Cart, EventId, HoldId, Money, Strategy};

use super::Store;
use crate::domain::stock::{Stock, Taken};

/// The hold that a section wants to write.
pub(crate) struct NewHold<'a> {
    pub(crate) id: &'a HoldId,
    pub(crate) buyer: &'a Buyer,
    pub(crate) items: &'a Cart,
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) amount: Money,
    pub(crate) strategy: Strategy,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) expires_at: DateTime<Utc>,
}

/// What became of a read that announces itself.
#[derive(Debug, PartialEq)]
pub(crate) enum Announced {
    /// The token stands on every row, and the cart holds what they said.
    Read,
    /// The row of this event has seen a newer token, and nothing was left anywhere.
    Stale(EventId),
}

/// What became of the section's write. Everything but `Written` has been rolled back.
#[derive(Debug, PartialEq)]
pub(crate) enum HoldWrite {
    /// The stock is taken and the hold stands.
    Written,
    /// The id is in use: somebody sent the same request at the same time.
    HoldExists,
    /// The row of this event has seen a newer fencing token.
    Stale(EventId),
    /// Somebody else was faster: the version moved on, or the condition no longer holds. Read again.
    Lost,
    /// Found under the row lock of `atomic`: the buyer has this many of the event already.
    LimitReached { event_id: EventId, held_or_owned: i64 },
}

/// What a buyer has of the event `e`, holds and tickets together. A confirmed hold *is* its tickets, so the
/// lines of both are counted. Not computed where there is no limit.
macro_rules! held_or_owned {
    ($buyer:literal) => {
        concat!(
            "cast(case when e.max_per_buyer is null then 0 else
               (select coalesce(sum(i.quantity), 0)
                  from hold h join hold_item i on i.hold_id = h.hold_id
                 where h.buyer = ",
            $buyer,
            " and i.event_id = e.event_id and h.status in ('placed', 'releasing', 'confirmed'))
             end as bigint)"
        )
    };
}

impl Store {
    /// The section's read: what is free, and what the buyer has already. No transaction is held afterwards.
    pub(crate) async fn read_stock(&self, event_id: &EventId, buyer: &Buyer) -> sqlx::Result<Stock> {
        let (available, version, held_or_owned): (i64, i64, i64) = with_reader!(self.db, c => {
            sqlx::query_as(concat!(
                "select e.available, e.version, ",
                held_or_owned!("$2"),
                " from event e where e.event_id = $1"
            ))
            .bind(event_id.as_str())
            .bind(buyer.as_str())
            .fetch_one(c)
            .await
        })?;
        Ok(Stock {
            available,
            version,
            held_or_owned,
        })
    }

    /// The read on which a fenced section decides: it leaves its token on the row of every event of the cart, and
    /// what the rows say then replaces what the cart said. From here on each row refuses whoever is older.
    ///
    /// It moves no version: nothing that anybody compares has changed.
    pub(crate) async fn read_announced(
        &self,
        token: i64,
        buyer: &Buyer,
        cart: &mut [Taken<'_>],
    ) -> sqlx::Result<Announced> {
        let mut tx = self.db.begin().await?;
        match announce(&mut tx, token, buyer, cart).await {
            Ok(Announced::Read) => {
                tx.commit().await?;
                Ok(Announced::Read)
            }
            not_read => {
                tx.rollback().await?;
                not_read
            }
        }
    }

    /// The section's write: the stock of every event and the hold, in one transaction.
    ///
    /// `taken` is in the order of the event ids, for all carts alike, so that the row locks it takes cannot
    /// form a circle.
    pub(crate) async fn write_hold(
        &self,
        rule: WriteRule,
        hold: &NewHold<'_>,
        taken: &[Taken<'_>],
    ) -> sqlx::Result<HoldWrite> {
        let mut tx = self.db.begin().await?;
        match write(&mut tx, rule, hold, taken).await {
            Ok(HoldWrite::Written) => {
                tx.commit().await?;
                Ok(HoldWrite::Written)
            }
            not_written => {
                tx.rollback().await?;
                not_written
            }
        }
    }

    /// Counts a write that came too late, after its transaction was rolled back.
    pub(crate) async fn count_refused_token(&self, event_id: &EventId) -> sqlx::Result<()> {
        let mut tx = self.db.begin().await?;
        with_tx!(tx, c => {
            sqlx::query(
                "insert into refused_token (event_id, refused) values ($1, 1)
                 on conflict (event_id) do update set refused = refused_token.refused + 1",
            )
            .bind(event_id.as_str())
            .execute(c)
            .await
            .map(|_| ())
        })?;
        tx.commit().await
    }
}

async fn announce(tx: &mut Tx, token: i64, buyer: &Buyer, cart: &mut [Taken<'_>]) -> sqlx::Result<Announced> {
    for line in cart {
        let row: Option<(i64, i64)> = with_tx!(tx, c => {
            sqlx::query_as(
                "update event set fencing_token = $2
                  where event_id = $1 and fencing_token <= $2
                 returning available, version",
            )
            .bind(line.event_id.as_str())
            .bind(token)
            .fetch_optional(c)
            .await
        })?;
        let Some((available, version)) = row else {
            return Ok(Announced::Stale(line.event_id.clone()));
        };
        // A statement of its own: PostgreSQL shows the update above the newest row, however long it waited for
        // it, but would count the holds as they were when the waiting began.
        let held_or_owned = match line.max_per_buyer {
            Some(_) => held_or_owned(tx, line.event_id, buyer).await?,
            None => 0,
        };
        line.stock = Stock {
            available,
            version,
            held_or_owned,
        };
    }
    Ok(Announced::Read)
}

async fn write(
    tx: &mut Tx,
    rule: WriteRule,
    hold: &NewHold<'_>,
    taken: &[Taken<'_>],
) -> sqlx::Result<HoldWrite> {
    for line in taken {
        let Some(version) = take(tx, rule, line).await? else {
            return Ok(match rule {
                WriteRule::Fenced(_) => HoldWrite::Stale(line.event_id.clone()),
                // `Plain` has no condition; that its row is gone cannot be, since events are never deleted.
                WriteRule::CompareVersion | WriteRule::Conditional | WriteRule::Plain => HoldWrite::Lost,
            });
        };
        if let Some(token) = rule.fencing_token() {
            log_token(tx, line.event_id, version, token).await?;
        }
        // Here the row is locked and the buyer's other holds cannot change: what the other strategies compare
        // after their read, this one compares now.
        if let (WriteRule::Conditional, Some(limit)) = (rule, line.max_per_buyer) {
            let held_or_owned = held_or_owned(tx, line.event_id, hold.buyer).await?;
            if held_or_owned + line.quantity > limit {
                return Ok(HoldWrite::LimitReached {
                    event_id: line.event_id.clone(),
                    held_or_owned,
                });
            }
        }
    }
    if !insert_hold(tx, rule, hold).await? {
        return Ok(HoldWrite::HoldExists);
    }
    for (number, line) in (1_i64..).zip(hold.items.lines()) {
        with_tx!(tx, c => {
            sqlx::query("insert into hold_item (hold_id, line, event_id, quantity) values ($1, $2, $3, $4)")
                .bind(hold.id.as_str())
                .bind(number)
                .bind(line.event_id.as_str())
                .bind(i64::from(line.quantity.get()))
                .execute(c)
                .await
                .map(|_| ())
        })?;
    }
    Ok(HoldWrite::Written)
}

/// Takes the stock by the rule; the event's new version, or `None` if the rule forbids it.
async fn take(tx: &mut Tx, rule: WriteRule, line: &Taken<'_>) -> sqlx::Result<Option<i64>> {
    let (read, quantity) = (line.stock.available, line.quantity);
    let row: Option<(i64,)> = match rule {
        WriteRule::Plain => with_tx!(tx, c => {
            sqlx::query_as(
                "update event set available = $2 - $3, version = version + 1
                  where event_id = $1
                 returning version",
            )
            .bind(line.event_id.as_str())
            .bind(read)
            .bind(quantity)
            .fetch_optional(c)
            .await
        })?,
        WriteRule::Fenced(_) => with_tx!(tx, c => {
            sqlx::query_as(
                "update event set available = $2 - $3, version = version + 1, fencing_token = $4
                  where event_id = $1 and fencing_token <= $4
                 returning version",
            )
            .bind(line.event_id.as_str())
            .bind(read)
            .bind(quantity)
            .bind(rule.fencing_token())
            .fetch_optional(c)
            .await
        })?,
        WriteRule::CompareVersion => with_tx!(tx, c => {
            sqlx::query_as(
                "update event set available = $2 - $3, version = version + 1
                  where event_id = $1 and version = $4
                 returning version",
            )
            .bind(line.event_id.as_str())
            .bind(read)
            .bind(quantity)
            .bind(line.stock.version)
            .fetch_optional(c)
            .await
        })?,
        WriteRule::Conditional => with_tx!(tx, c => {
            sqlx::query_as(
                "update event set available = available - $2, version = version + 1
                  where event_id = $1 and available >= $2
                 returning version",
            )
            .bind(line.event_id.as_str())
            .bind(quantity)
            .fetch_optional(c)
            .await
        })?,
    };
    Ok(row.map(|(version,)| version))
}

/// Notes an accepted token. The row is locked by the write before: the versions, and so the log, are in the
/// order of the writes.
pub(super) async fn log_token(tx: &mut Tx, event_id: &EventId, version: i64, token: i64) -> sqlx::Result<()> {
    with_tx!(tx, c => {
        sqlx::query("insert into accepted_token (event_id, version, fencing_token) values ($1, $2, $3)")
            .bind(event_id.as_str())
            .bind(version)
            .bind(token)
            .execute(c)
            .await
            .map(|_| ())
    })
}

async fn held_or_owned(tx: &mut Tx, event_id: &EventId, buyer: &Buyer) -> sqlx::Result<i64> {
    let (held_or_owned,): (i64,) = with_tx!(tx, c => {
        sqlx::query_as(concat!("select ", held_or_owned!("$2"), " from event e where e.event_id = $1"))
            .bind(event_id.as_str())
            .bind(buyer.as_str())
            .fetch_one(c)
            .await
    })?;
    Ok(held_or_owned)
}

/// `false` if the id is in use.
async fn insert_hold(tx: &mut Tx, rule: WriteRule, hold: &NewHold<'_>) -> sqlx::Result<bool> {
    let inserted = with_tx!(tx, c => {
        sqlx::query(
            "insert into hold
                (hold_id, status, buyer, ttl_ms, amount_minor, currency, strategy, fencing_token, created_at, expires_at)
             values ($1, 'placed', $2, $3, $4, $5, $6, $7, $8, $9)
             on conflict (hold_id) do nothing",
        )
        .bind(hold.id.as_str())
        .bind(hold.buyer.as_str())
        .bind(hold.ttl_ms.map(i64::from))
        .bind(hold.amount.amount_minor())
        .bind(hold.amount.currency().code())
        .bind(hold.strategy.name())
        .bind(rule.fencing_token())
        .bind(hold.created_at)
        .bind(hold.expires_at)
        .execute(c)
        .await
        .map(|done| done.rows_affected())
    })?;
    Ok(inserted == 1)
}
