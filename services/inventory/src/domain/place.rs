//! Placing a hold: the critical section of the laboratory, and what stands around it.
//!
//! The section itself is [`Inventory::section`]: read, compare, fault point, write. It is the same code under
//! `none` and under every lock. What differs is whether somebody else can be in it at the same time, and what the
//! [`guard::WriteRule`] asks: one clause of its write, and with a fencing token a read that announces itself.
//!
//! Around it stands what a client may expect of a PUT: the same hold again is the same answer. The id is looked
//! up *before* the lock (a repeat should not queue for it) and once more *before a refusal*: while this request
//! waited for the lock, its twin may have placed the hold with the last tickets, and "sold out" would then be
//! said to the very buyer who has them.
//!
//! No connection is held while a lock is awaited, and no lock while an answer is made up. Whoever is inside goes on
//! to the end, also when its client has hung up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use guard::{Attempts, Entry};
use service_kit::CallContext;
use ticketing_types::inventory::{HoldStatus, HoldView, PlaceHold, ShortLine};
use ticketing_types::{EventId, HoldId, Money, SectionTimings, Strategy};
use tracing::Span;

use super::error::PlaceHoldError;
use super::price::{self, Offer};
use super::stock::{self, Refusal, Taken};
use super::{AFTER_HOLD, CRITICAL_SECTION, Inventory, again_while_busy, lock_name};
use crate::store::{self, Announced, HoldWrite, NewHold, StoredHold};

/// A request for a hold.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) id: HoldId,
    pub(crate) request: PlaceHold,
    pub(crate) strategy: Strategy,
}

/// A hold that stands, and whether this request has placed it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) view: HoldView,
    pub(crate) created: bool,
}

/// A cart with what is known before any stock is looked at.
struct Order {
    /// In the order of the event ids.
    lines: Vec<OrderLine>,
    amount: Money,
}

struct OrderLine {
    event_id: EventId,
    quantity: u32,
    offer: Offer,
}

/// What one run of the section came to.
enum Section {
    Placed {
        view: HoldView,
        read_at: DateTime<Utc>,
        written_at: DateTime<Utc>,
    },
    Refused(Refusal),
    /// Somebody sent the same request at the same time.
    HoldExists,
    Stale(EventId),
    /// Somebody else was faster, and nothing was written: read again.
    Lost,
}

impl Inventory {
    /// Holds everything in the cart or nothing.
    pub(crate) async fn place_hold(
        &self,
        wish: &Arc<Wish>,
        context: &CallContext,
    ) -> Result<Placed, PlaceHoldError> {
        // One budget for all tries, so that a busy database cannot multiply the wait for the lock.
        let deadline = Instant::now() + self.settings.lock_wait;
        let placed = again_while_busy(|| self.place_once(wish, context, deadline)).await?;
        if placed.created {
            let reached = self.faults.at(AFTER_HOLD, context).scope(wish.id.as_str());
            reached.hit().await.map_err(PlaceHoldError::Injected)?;
        }
        Ok(placed)
    }

    async fn place_once(
        &self,
        wish: &Arc<Wish>,
        context: &CallContext,
        deadline: Instant,
    ) -> Result<Placed, PlaceHoldError> {
        if let Some(known) = self.store.find_hold(&wish.id).await? {
            return again(known, wish);
        }
        let order = Arc::new(self.order(wish).await?);
        let names: Vec<_> = order.lines.iter().map(|line| lock_name(&line.event_id)).collect();
        Span::current().record("lock.name", names.join(","));

        let left = || deadline.saturating_duration_since(Instant::now());
        let mut timings = SectionTimings::default();
        let mut attempts = Attempts::within(left());
        loop {
            let entry = self.guards.enter(wish.strategy, &names, left()).await?;
            if let Some(token) = entry.rule.fencing_token() {
                Span::current().record("fencing_token", token);
            }
            let inside = {
                let (inventory, wish, order) = (self.clone(), wish.clone(), order.clone());
                let context = context.clone();
                async move {
                    let done = inventory.section(&entry, &wish, &order, &context).await;
                    // Here the entry is dropped: the next one may enter while we make up our answer.
                    (done, entry.waited, entry.inside())
                }
            };
            let (done, waited, inside) = self.to_its_end(inside).await;
            timings.lock_wait_ms += ms(waited);
            timings.section_ms += ms(inside);
            match done? {
                Section::Placed {
                    view,
                    read_at,
                    written_at,
                } => {
                    timings.read_at = Some(read_at);
                    timings.written_at = Some(written_at);
                    return Ok(Placed {
                        view: HoldView { timings, ..view },
                        created: true,
                    });
                }
                Section::Refused(refusal) => return self.refused(wish, refusal).await,
                Section::HoldExists => {
                    let known = self
                        .store
                        .find_hold(&wish.id)
                        .await?
                        .ok_or(sqlx::Error::RowNotFound)?;
                    return again(known, wish);
                }
                Section::Stale(event_id) => {
                    self.note_stale_token(&event_id).await;
                    return Err(PlaceHoldError::StaleToken(event_id));
                }
                Section::Lost if attempts.again().await => {}
                Section::Lost => return Err(PlaceHoldError::Contended),
            }
        }
    }

    /// The critical section. Somebody is inside with us or not: that is up to the entry, and not seen here.
    async fn section(
        &self,
        entry: &Entry,
        wish: &Wish,
        order: &Order,
        context: &CallContext,
    ) -> Result<Section, PlaceHoldError> {
        // Read-then-write, on purpose: this window between the two is what the laboratory is about. It has no
        // sleep in it, under no strategy, and nobody looks a second time whether what was read still holds.
        let mut cart = Vec::with_capacity(order.lines.len());
        for line in &order.lines {
            cart.push(Taken {
                event_id: &line.event_id,
                quantity: i64::from(line.quantity),
                max_per_buyer: line.offer.max_per_buyer,
                stock: self.store.read_stock(&line.event_id, &wish.request.buyer).await?,
            });
        }

        // A refusal writes nothing, and needs no token: a sold-out crowd is sent home from here.
        if let Some(refusal) = stock::refuse(&cart) {
            return Ok(Section::Refused(refusal));
        }

        // Under a fence, whoever is about to take seats decides on a read that leaves its token on the row.
        //
        // Kleppmann ("How to do distributed locking", 2016) has the storage check the token of each write. That is
        // enough where a write stands for itself. Ours is the end of a read-modify-write: an old holder that wakes
        // *after* our read and *before* our write finds a row that has not seen our token yet, is let through, and
        // is then overwritten by us, whose token is newer. Two holds, one seat. So the row hears of us at the read:
        // whoever is older has written before it, and we see it, or never will.
        if let Some(token) = entry.rule.fencing_token() {
            let announced = self
                .store
                .read_announced(token, &wish.request.buyer, &mut cart)
                .await?;
            if let Announced::Stale(event_id) = announced {
                return Ok(Section::Stale(event_id));
            }
            if let Some(refusal) = stock::refuse(&cart) {
                return Ok(Section::Refused(refusal));
            }
        }

        let read_at = Utc::now();

        self.pass_fault_point(entry, &order.lines[0].event_id, context)
            .await?;

        let hold = self.new_hold(wish, order);
        Ok(match self.store.write_hold(entry.rule, &hold, &cart).await? {
            HoldWrite::Written => Section::Placed {
                view: hold_view(&hold),
                read_at,
                written_at: Utc::now(),
            },
            HoldWrite::HoldExists => Section::HoldExists,
            HoldWrite::Stale(event_id) => Section::Stale(event_id),
            HoldWrite::Lost => Section::Lost,
            HoldWrite::LimitReached {
                event_id,
                held_or_owned,
            } => Section::Refused(over_the_limit(&cart, event_id, held_or_owned)),
        })
    }

    /// A pause here is a holder that was stopped: its keep-alive stops too, for as long.
    async fn pass_fault_point(
        &self,
        entry: &Entry,
        event_id: &EventId,
        context: &CallContext,
    ) -> Result<(), PlaceHoldError> {
        let mut paused = None;
        let reached = self.faults.at(CRITICAL_SECTION, context).scope(event_id.as_str());
        let passed = reached
            .on_pause(|| paused = Some(entry.pause_keep_alive()))
            .hit()
            .await;
        drop(paused);
        passed.map(|_| ()).map_err(PlaceHoldError::Injected)
    }

    fn new_hold<'a>(&self, wish: &'a Wish, order: &Order) -> NewHold<'a> {
        let ttl_ms = wish.request.ttl_ms.map(|ttl| ttl.get());
        let ttl = ttl_ms.map_or(self.settings.hold_ttl, |ms| Duration::from_millis(ms.into()));
        let created_at = store::now();
        NewHold {
            id: &wish.id,
            buyer: &wish.request.buyer,
            items: &wish.request.items,
            ttl_ms,
            amount: order.amount,
            strategy: wish.strategy,
            created_at,
            expires_at: created_at + ttl,
        }
    }

    /// Prices and limits: what cannot change, and so needs no guard.
    async fn order(&self, wish: &Wish) -> Result<Order, PlaceHoldError> {
        let mut lines = Vec::new();
        for (event_id, quantity) in wish.request.items.by_event() {
            let offer = self.store.offer(event_id).await?;
            let offer = offer.ok_or_else(|| PlaceHoldError::UnknownEvent(event_id.clone()))?;
            lines.push(OrderLine {
                event_id: event_id.clone(),
                quantity,
                offer,
            });
        }
        let amount = price::total(lines.iter().map(|line| (line.offer.price, line.quantity)))?;
        Ok(Order { lines, amount })
    }

    /// A refusal, unless the request's twin has placed the hold meanwhile.
    async fn refused(&self, wish: &Wish, refusal: Refusal) -> Result<Placed, PlaceHoldError> {
        if let Some(known) = self.store.find_hold(&wish.id).await? {
            return again(known, wish);
        }
        Err(match refusal {
            Refusal::Limit {
                event_id,
                limit,
                held_or_owned,
                requested,
            } => PlaceHoldError::LimitReached {
                event_id,
                limit,
                held_or_owned,
                requested,
            },
            Refusal::Short(short) => {
                let mut lines = Vec::with_capacity(short.len());
                for (event_id, requested, available) in short {
                    lines.push(ShortLine {
                        may_return: self.store.is_held(&event_id).await?,
                        event_id,
                        requested: u32::try_from(requested).unwrap_or(u32::MAX),
                        available,
                    });
                }
                PlaceHoldError::SoldOut(lines)
            }
        })
    }

    /// Counts a refused token for the audit. That the count fails must not change the answer.
    pub(super) async fn note_stale_token(&self, event_id: &EventId) {
        tracing::warn!(event.id = %event_id, "a stale fencing token was refused");
        let counted = again_while_busy(|| self.store.count_refused_token(event_id)).await;
        if let Err(error) = counted {
            tracing::error!(%error, event.id = %event_id, "a refused token could not be counted");
        }
    }
}

/// The answer to a request whose id was used before.
fn again(known: StoredHold, wish: &Wish) -> Result<Placed, PlaceHoldError> {
    match known.status {
        HoldStatus::Closed | HoldStatus::Releasing | HoldStatus::Released => {
            return Err(PlaceHoldError::Closed);
        }
        HoldStatus::Expired => return Err(PlaceHoldError::Expired),
        // Its time is over, and only the worker has not been there yet.
        HoldStatus::Placed if known.expires_at <= store::now() => return Err(PlaceHoldError::Expired),
        HoldStatus::Placed | HoldStatus::Confirmed => {}
    }
    let Some(order) = known.order else {
        return Err(PlaceHoldError::Mismatch);
    };
    let same = order.buyer == wish.request.buyer
        && order.items == wish.request.items
        && order.ttl_ms == wish.request.ttl_ms.map(|ttl| i64::from(ttl.get()));
    if !same {
        return Err(PlaceHoldError::Mismatch);
    }
    Ok(Placed {
        view: HoldView {
            id: known.id,
            items: order.items,
            amount: order.amount,
            expires_at: known.expires_at,
            timings: SectionTimings::default(),
        },
        created: false,
    })
}

fn hold_view(hold: &NewHold<'_>) -> HoldView {
    HoldView {
        id: hold.id.clone(),
        items: hold.items.clone(),
        amount: hold.amount,
        expires_at: hold.expires_at,
        timings: SectionTimings::default(),
    }
}

fn over_the_limit(cart: &[Taken<'_>], event_id: EventId, held_or_owned: i64) -> Refusal {
    let line = cart.iter().find(|line| *line.event_id == event_id);
    Refusal::Limit {
        limit: line.and_then(|line| line.max_per_buyer).unwrap_or_default(),
        requested: line.map_or(0, |line| line.quantity),
        event_id,
        held_or_owned,
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
