//! How a hold ends: confirmed, released or expired, each exactly once (I7).
//!
//! Every way out of `placed` is one conditional update of the hold's row, in the transaction that also writes the
//! tickets or moves the stock. Whoever comes second finds another status, changes nothing and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use guard::WriteRule;
use service_db::{Tx, with_reader, with_tx};
use ticketing_types::inventory::Ticket;
use ticketing_types::{EventId, HoldId, Strategy, TicketId};
use uuid::Uuid;

use super::section::log_token;
use super::{Store, stored};

/// What a confirm found.
#[derive(Debug, PartialEq)]
pub(crate) enum Confirmation {
    /// The hold became these tickets, now.
    Confirmed(Vec<Ticket>),
    /// It is not, or no longer, placed; look at it to see what it is.
    NotPlaced,
}

/// What a release found.
#[derive(Debug, PartialEq)]
pub(crate) enum Release {
    /// The stock is owed from now on: the hold was placed.
    Owed(DueGroup),
    /// The id was never seen, and is closed now.
    Closed,
    /// It was no longer placed; look at it to see what it is.
    NotPlaced,
}

/// What giving back came to.
#[derive(Debug, PartialEq)]
pub(crate) enum GiveBack {
    /// This many holds were ended by this call; the others had been ended by somebody else.
    Done(usize),
    /// Nothing was given back: the row of this event has seen a newer fencing token. Enter again.
    Stale(EventId),
}

/// Holds that end together: they were placed under one strategy and hold the same events, so that one entry
/// into the section is enough for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueGroup {
    pub(crate) strategy: Strategy,
    pub(crate) events: BTreeSet<EventId>,
    pub(crate) holds: Vec<HoldId>,
}

impl Store {
    /// Turns a placed hold into tickets, unless its time is over.
    pub(crate) async fn confirm(&self, id: &HoldId, now: DateTime<Utc>) -> sqlx::Result<Confirmation> {
        let mut tx = self.db.begin().await?;
        let confirmed = with_tx!(tx, c => {
            sqlx::query(
                "update hold set status = 'confirmed', ended_at = $2
                  where hold_id = $1 and status = 'placed' and expires_at > $2",
            )
            .bind(id.as_str())
            .bind(now)
            .execute(c)
            .await
            .map(|done| done.rows_affected())
        })?;
        if confirmed == 0 {
            tx.rollback().await?;
            return Ok(Confirmation::NotPlaced);
        }
        let mut tickets = Vec::new();
        for (event_id, quantity) in contents(&mut tx, id).await? {
            for _ in 0..quantity {
                let ticket = Ticket {
                    id: TicketId::from_uuid(Uuid::now_v7()),
                    event_id: event_id.clone(),
                };
                insert_ticket(&mut tx, id, &ticket, now).await?;
                tickets.push(ticket);
            }
        }
        tx.commit().await?;
        Ok(Confirmation::Confirmed(tickets))
    }

    /// Makes the stock of a placed hold *owed*: from here on nobody can confirm it, and [`Store::give_back`] may
    /// follow at once or, whatever happens to this process, later. An id that was never seen is closed.
    pub(crate) async fn release(
        &self,
        id: &HoldId,
        strategy: Strategy,
        now: DateTime<Utc>,
    ) -> sqlx::Result<Release> {
        let mut tx = self.db.begin().await?;
        let mut released = owe(&mut tx, id, now).await?.map(Release::Owed);
        if released.is_none() && close(&mut tx, id, strategy, now).await? {
            released = Some(Release::Closed);
        }
        if released.is_none() {
            // The id exists. It may be a hold that our update did not see and our insert has waited for: its PUT
            // has committed only now (PostgreSQL shows each statement what was committed when it began).
            released = owe(&mut tx, id, now).await?.map(Release::Owed);
        }
        match released {
            Some(released) => {
                tx.commit().await?;
                Ok(released)
            }
            None => {
                tx.rollback().await?;
                Ok(Release::NotPlaced)
            }
        }
    }

    /// Gives the stock of `holds` back, those that are owed and those whose time is over; the others are left
    /// alone. To be called inside the section of the holds' events, with the rule of its entry.
    ///
    /// The increment is relative, and still needs the section: between the read and the absolute write of
    /// somebody who takes stock, it would be overwritten. With a token it is fenced like every other write.
    pub(crate) async fn give_back(
        &self,
        rule: WriteRule,
        holds: &[HoldId],
        now: DateTime<Utc>,
    ) -> sqlx::Result<GiveBack> {
        let mut tx = self.db.begin().await?;
        match give_back(&mut tx, rule, holds, now).await {
            Ok(GiveBack::Done(ended)) if ended > 0 => {
                tx.commit().await?;
                Ok(GiveBack::Done(ended))
            }
            nothing => {
                tx.rollback().await?;
                nothing
            }
        }
    }

    /// What has to be given back now: stock that has been owed for longer than `patience` (whoever released it
    /// is probably gone, or could not enter), and holds whose time is over. The oldest first, at most `limit` of
    /// each strategy: debts that nobody can pay now, because the lock cluster is away, take no room from others.
    pub(crate) async fn due(
        &self,
        now: DateTime<Utc>,
        patience: Duration,
        limit: u32,
    ) -> sqlx::Result<Vec<DueGroup>> {
        let rows: Vec<(String, String, String)> = with_reader!(self.db, c => {
            sqlx::query_as(
                "select d.hold_id, d.strategy, i.event_id
                   from (select hold_id, strategy,
                                row_number() over (partition by strategy order by expires_at, hold_id) as turn
                           from hold
                          where status in ('placed', 'releasing')
                            and (status = 'releasing' and ended_at <= $2 or status = 'placed' and expires_at <= $1)
                        ) d
                   join hold_item i on i.hold_id = d.hold_id
                  where d.turn <= $3
                  group by d.hold_id, d.strategy, i.event_id
                  order by d.hold_id, i.event_id",
            )
            .bind(now)
            .bind(now - patience)
            .bind(i64::from(limit))
            .fetch_all(c)
            .await
        })?;
        grouped(rows)
    }
}

/// Rows of (hold, strategy, event), ordered by hold, as groups that share strategy and events.
fn grouped(rows: Vec<(String, String, String)>) -> sqlx::Result<Vec<DueGroup>> {
    let mut by_hold: BTreeMap<HoldId, (Strategy, BTreeSet<EventId>)> = BTreeMap::new();
    for (hold_id, strategy, event_id) in rows {
        let (_, events) = by_hold
            .entry(stored(&hold_id)?)
            .or_insert((stored(&strategy)?, BTreeSet::new()));
        events.insert(stored(&event_id)?);
    }
    let mut groups: BTreeMap<(Strategy, BTreeSet<EventId>), Vec<HoldId>> = BTreeMap::new();
    for (hold_id, key) in by_hold {
        groups.entry(key).or_default().push(hold_id);
    }
    Ok(groups
        .into_iter()
        .map(|((strategy, events), holds)| DueGroup {
            strategy,
            events,
            holds,
        })
        .collect())
}

async fn give_back(
    tx: &mut Tx,
    rule: WriteRule,
    holds: &[HoldId],
    now: DateTime<Utc>,
) -> sqlx::Result<GiveBack> {
    // In the order of the ids: two instances that end the same holds wait for each other, and not in a circle.
    let holds: BTreeSet<&HoldId> = holds.iter().collect();
    let mut returned: BTreeMap<EventId, i64> = BTreeMap::new();
    let mut ended = 0;
    for id in holds {
        if end(tx, id, now).await? {
            ended += 1;
            for (event_id, quantity) in contents(tx, id).await? {
                *returned.entry(event_id).or_insert(0) += quantity;
            }
        }
    }
    for (event_id, quantity) in returned {
        let row: Option<(i64,)> = match rule.fencing_token() {
            Some(token) => with_tx!(tx, c => {
                sqlx::query_as(
                    "update event set available = available + $2, version = version + 1, fencing_token = $3
                      where event_id = $1 and fencing_token <= $3
                     returning version",
                )
                .bind(event_id.as_str())
                .bind(quantity)
                .bind(token)
                .fetch_optional(c)
                .await
            })?,
            None => with_tx!(tx, c => {
                sqlx::query_as(
                    "update event set available = available + $2, version = version + 1
                      where event_id = $1
                     returning version",
                )
                .bind(event_id.as_str())
                .bind(quantity)
                .fetch_optional(c)
                .await
            })?,
        };
        let Some((version,)) = row else {
            return Ok(GiveBack::Stale(event_id));
        };
        if let Some(token) = rule.fencing_token() {
            log_token(tx, &event_id, version, token).await?;
        }
    }
    Ok(GiveBack::Done(ended))
}

/// Makes the stock of a hold owed; `None` if it is not placed.
async fn owe(tx: &mut Tx, id: &HoldId, now: DateTime<Utc>) -> sqlx::Result<Option<DueGroup>> {
    let owed: Option<(String,)> = with_tx!(tx, c => {
        sqlx::query_as(
            "update hold set status = 'releasing', ended_at = $2
              where hold_id = $1 and status = 'placed'
             returning strategy",
        )
        .bind(id.as_str())
        .bind(now)
        .fetch_optional(c)
        .await
    })?;
    let Some((strategy,)) = owed else {
        return Ok(None);
    };
    Ok(Some(DueGroup {
        strategy: stored(&strategy)?,
        events: contents(tx, id).await?.into_keys().collect(),
        holds: vec![id.clone()],
    }))
}

/// Uses an id up that was never seen; `false` if it was.
async fn close(tx: &mut Tx, id: &HoldId, strategy: Strategy, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let closed = with_tx!(tx, c => {
        sqlx::query(
            "insert into hold (hold_id, status, strategy, created_at, expires_at, ended_at)
             values ($1, 'closed', $2, $3, $3, $3)
             on conflict (hold_id) do nothing",
        )
        .bind(id.as_str())
        .bind(strategy.name())
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected())
    })?;
    Ok(closed == 1)
}

/// The one update by which a hold stops being counted; `false` if somebody else was there first.
async fn end(tx: &mut Tx, id: &HoldId, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let ended = with_tx!(tx, c => {
        sqlx::query(
            "update hold
                set status = case status when 'releasing' then 'released' else 'expired' end,
                    ended_at = coalesce(ended_at, $2)
              where hold_id = $1 and (status = 'releasing' or (status = 'placed' and expires_at <= $2))",
        )
        .bind(id.as_str())
        .bind(now)
        .execute(c)
        .await
        .map(|done| done.rows_affected())
    })?;
    Ok(ended == 1)
}

/// What a hold holds, per event.
async fn contents(tx: &mut Tx, id: &HoldId) -> sqlx::Result<BTreeMap<EventId, i64>> {
    let rows: Vec<(String, i64)> = with_tx!(tx, c => {
        sqlx::query_as(
            "select event_id, cast(sum(quantity) as bigint) from hold_item where hold_id = $1 group by event_id",
        )
        .bind(id.as_str())
        .fetch_all(c)
        .await
    })?;
    rows.iter()
        .map(|(event_id, quantity)| Ok((stored(event_id)?, *quantity)))
        .collect()
}

async fn insert_ticket(tx: &mut Tx, hold: &HoldId, ticket: &Ticket, now: DateTime<Utc>) -> sqlx::Result<()> {
    with_tx!(tx, c => {
        sqlx::query("insert into ticket (ticket_id, event_id, hold_id, created_at) values ($1, $2, $3, $4)")
            .bind(ticket.id.as_str())
            .bind(ticket.event_id.as_str())
            .bind(hold.as_str())
            .bind(now)
            .execute(c)
            .await
            .map(|_| ())
    })
}
