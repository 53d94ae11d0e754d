//! Buying: one purchase per buyer and key.
//!
//! The critical section is `Checkout::section`, and it is naive on purpose: look for a purchase with this key,
//! find none, insert one. What happens between the look and the insert is up to whatever guards the section,
//! and nothing else differs between a round in which one key buys twice and one in which it does not. The lock
//! is left right after the insert: a duplicate that enters next sees a purchase under way and is told so.
//! Nobody holds it while seats are held and cards are charged.
//!
//! What a repeated request is answered, in this order:
//! another fingerprint → the caller reused a key · still under way → come back · over → the answer as it was
//! first given, good or bad. A purchase that ended because everybody was busy is the exception: nothing had
//! happened, so the same key starts it again.

use std::time::Duration;

use chrono::{DateTime, Utc};
use guard::{Attempts, Entry, GuardError};
use service_kit::{CallContext, Problem};
use ticketing_types::PurchaseId;
use ticketing_types::checkout::{PurchaseStatus, PurchaseView};
use tracing::Span;

use super::checkout::{Checkout, Driven};
use super::driver::Drive;
use super::purchase::{FinalAnswer, Order, Purchase, Terms, now};
use crate::store::{Claim, Written};

/// The fault point inside the section.
pub const CRITICAL_SECTION: &str = "checkout.critical-section";

/// How often the section is entered again after its lock was lost before the write.
const STALE_TRIES_MAX: u32 = 3;

/// What the buyer is told.
#[derive(Debug)]
pub enum Bought {
    /// It is over.
    Answered {
        /// Which purchase.
        id: PurchaseId,
        /// What was decided, now or earlier.
        answer: FinalAnswer,
        /// Whether it was decided earlier.
        replayed: bool,
    },
    /// It is not over within the budget. It goes on.
    UnderWay(Box<PurchaseView>),
}

/// Why nothing was bought, with nothing kept.
#[derive(Debug, thiserror::Error)]
pub enum BuyError {
    /// The same buyer used this key for something else.
    #[error("this key was used for another order")]
    KeyReused,
    /// The same request is being worked on.
    #[error("this purchase is under way")]
    InProgress(PurchaseId),
    /// Everybody is busy; nothing happened, and the same key may come again.
    #[error("nothing could be held for now")]
    Busy,
    /// The section could not be entered.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A fault was injected into the section.
    #[error("{0}")]
    Injected(Problem),
    /// The book cannot be read or written.
    #[error(transparent)]
    Store(#[from] sqlx::Error),
}

/// Whose purchase it is.
enum Begun {
    /// This request's: a new one, or one that starts again.
    New {
        /// As it was when its drive began.
        under_way: Box<PurchaseView>,
        driven: Driven,
    },
    /// Somebody was there before.
    Found(Box<Purchase>),
}

/// One try of the section.
enum Section {
    New(Claim, Box<Purchase>),
    Found(Box<Purchase>),
    /// The lock was lost before the write; nothing was written.
    Stale,
    /// Somebody else wrote between the look and the write; look again.
    Beaten,
}

impl Checkout {
    /// Buys, or says what became of the earlier request with this key.
    pub async fn buy(&self, order: Order, context: CallContext) -> Result<Bought, BuyError> {
        let arrived = now();
        // An answer that is there needs no lock; nor does it need the lock cluster to be up.
        if let Some(found) = self.store().find(&order.buyer, &order.idempotency_key).await?
            && !found.may_start_again()
        {
            return self.repeat(found, &order).await;
        }
        match self.begin(&order, &context, arrived).await? {
            Begun::Found(found) => self.repeat(*found, &order).await,
            Begun::New { under_way, driven } => match driven.within_budget().await {
                Some(Drive::Ended {
                    purchase,
                    answer: Some(answer),
                }) => Ok(Bought::Answered {
                    id: purchase.id.clone(),
                    answer,
                    replayed: false,
                }),
                Some(Drive::Ended { answer: None, .. }) => Err(BuyError::Busy),
                Some(Drive::Unfinished(purchase)) => Ok(Bought::UnderWay(Box::new(purchase.view()))),
                Some(Drive::Overtaken) | None => Ok(Bought::UnderWay(under_way)),
            },
        }
    }

    /// Enters the section as often as it takes to learn whose purchase it is.
    async fn begin(
        &self,
        order: &Order,
        context: &CallContext,
        arrived: DateTime<Utc>,
    ) -> Result<Begun, BuyError> {
        let parts = self.parts();
        let terms = Terms::of(context, parts.settings.default_strategy);
        let names = [order.lock_name()];
        let span = Span::current();
        span.record("strategy", terms.strategy.name());
        span.record("lock.name", &names[0]);
        let mut waited = Duration::ZERO;
        let mut attempts = Attempts::few(STALE_TRIES_MAX);
        loop {
            let wait = parts.settings.lock_wait;
            let entry = parts.guards.enter(terms.strategy, &names, wait).await?;
            waited += entry.waited;
            span.record("fencing_token", entry.rule.fencing_token());
            let mut purchase = Purchase::new(order.clone(), terms.clone(), arrived);
            purchase.timings.lock_wait_ms = waited.as_secs_f64() * 1000.0;
            // Hanging up gives a place in line back, and changes nothing once inside.
            let inside = self.clone().inside(entry, purchase, context.clone());
            if let Some(begun) = self.see_through(inside).await? {
                return Ok(begun);
            }
            if !attempts.again().await {
                return Err(BuyError::Busy);
            }
        }
    }

    /// Runs the section and begins the drive of what it began; `None` when nothing was written and somebody has
    /// to look again.
    async fn inside(
        self,
        entry: Entry,
        purchase: Purchase,
        context: CallContext,
    ) -> Result<Option<Begun>, BuyError> {
        let section = self.section(&entry, purchase, &context).await;
        let inside = entry.inside();
        drop(entry); // the release goes on in the background, the purchase does not wait for it
        Ok(match section? {
            Section::New(claim, mut purchase) => {
                purchase.timings.section_ms += inside.as_secs_f64() * 1000.0;
                Some(Begun::New {
                    under_way: Box::new(purchase.view()),
                    driven: self.begin_drive(claim, *purchase, context),
                })
            }
            Section::Found(purchase) => Some(Begun::Found(purchase)),
            Section::Stale | Section::Beaten => None,
        })
    }

    /// The critical section. It reads and then writes, which elsewhere would be a mistake: this is the race that
    /// the laboratory shows, and the guard around it is what is on trial.
    async fn section(
        &self,
        entry: &Entry,
        purchase: Purchase,
        context: &CallContext,
    ) -> Result<Section, BuyError> {
        let store = self.store();
        let order = &purchase.order;
        let found = store.find(&order.buyer, &order.idempotency_key).await?;
        let start_again = match found {
            Some(found) if !found.may_start_again() || found.order.fingerprint != order.fingerprint => {
                return Ok(Section::Found(Box::new(found)));
            }
            Some(ended) => Some(ended.id),
            None => None,
        };

        let mut paused = None;
        let at = self
            .parts()
            .faults
            .at(CRITICAL_SECTION, context)
            .scope(order.buyer.as_str());
        let hit = at
            .on_pause(|| paused = Some(entry.pause_keep_alive()))
            .hit()
            .await;
        drop(paused);
        hit.map_err(BuyError::Injected)?;

        let (id, written) = match start_again {
            None => (purchase.id.clone(), store.insert(&purchase, entry.rule).await?),
            Some(id) => (id.clone(), store.start_again(&id, &purchase, entry.rule).await?),
        };
        match written {
            Written::Claimed(claim) => {
                let purchase = Box::new(Purchase { id, ..purchase });
                Ok(Section::New(claim, purchase))
            }
            Written::Stale => {
                let token = entry.rule.fencing_token().unwrap_or_default();
                tracing::warn!(fencing_token = token, "a stale write was refused");
                store.note_stale_write(&purchase, token).await?;
                Ok(Section::Stale)
            }
            Written::Beaten => Ok(Section::Beaten),
        }
    }

    /// What an earlier request with this key means for this one.
    async fn repeat(&self, found: Purchase, order: &Order) -> Result<Bought, BuyError> {
        if found.order.fingerprint != order.fingerprint {
            return Err(BuyError::KeyReused);
        }
        // Asked before the status: a completed purchase that is being refunded is under way again, and its
        // first answer still stands.
        if let Some(answer) = self.store().answer(&found.id).await? {
            return Ok(Bought::Answered {
                id: found.id,
                answer,
                replayed: true,
            });
        }
        match found.saga.status() {
            PurchaseStatus::Pending => Err(BuyError::InProgress(found.id)),
            PurchaseStatus::Completed | PurchaseStatus::Rejected | PurchaseStatus::Cancelled => {
                Err(BuyError::Busy)
            }
        }
    }
}
