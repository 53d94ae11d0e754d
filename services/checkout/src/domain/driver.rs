//! Round the loop: ask the saga for the next step, take it, record what came of it, write that down, go on.
//!
//! One driver, two callers: the request that began the purchase, and the recovery worker that finds one whose
//! driver is gone. Neither needs to know the other, because whoever drives must hold the **claim** on the row,
//! and every write is conditional on it. A driver that was overtaken (its process was stopped, its claim ran
//! out, somebody else went on) learns so at its next write and stops. Until then both may ask for the same step:
//! with the same ids, so the services answer both alike.
//!
//! Between the answer of a step and the write of its record lies a fault point. A crash exactly there is the
//! worst one: the step is done and the book does not know it.

use std::sync::Arc;
use std::time::Instant;

use guard::Attempts;
use service_kit::{CallContext, Faults};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::purchase::{FinalAnswer, Purchase, now};
use super::saga::{Done, Outcome, Step};
use super::steps::Steps;
use crate::store::{Claim, Recorded, Store};

/// The fault points of the saga, for the board.
pub const FAULT_POINTS: [&str; 4] = [
    "checkout.after-hold",
    "checkout.after-authorize",
    "checkout.after-confirm",
    "checkout.after-capture",
];

/// What the buyer is answered once a purchase is over; `None` when that answer shall not be kept.
pub type AnswerOf = fn(&Purchase) -> Option<FinalAnswer>;

/// Drives purchases. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Driver {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    steps: Steps,
    faults: Faults,
    answer_of: AnswerOf,
    shutdown: CancellationToken,
}

/// How far a drive came.
#[derive(Debug)]
pub enum Drive {
    /// The purchase is over.
    Ended {
        /// As it is now.
        purchase: Box<Purchase>,
        /// The answer that this drive wrote down: the first one, when it was completed and then called off.
        answer: Option<FinalAnswer>,
    },
    /// Time is up, or the book cannot be written: the claim is given back, somebody else goes on later.
    Unfinished(Box<Purchase>),
    /// Somebody else drives it.
    Overtaken,
}

/// Why a record could not be written.
enum NotWritten {
    Overtaken,
    Failed(sqlx::Error),
}

impl Driver {
    /// A driver that works until `shutdown` falls.
    pub fn new(
        store: Store,
        steps: Steps,
        faults: Faults,
        answer_of: AnswerOf,
        shutdown: CancellationToken,
    ) -> Self {
        let inner = Inner {
            store,
            steps,
            faults,
            answer_of,
            shutdown,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Drives a claimed purchase until it is over, or until a step stays undecided past `deadline`.
    pub async fn drive(
        &self,
        claim: Claim,
        mut purchase: Purchase,
        context: CallContext,
        deadline: Instant,
    ) -> Drive {
        let context = purchase.terms.onto(context);
        match self.go_round(&claim, &mut purchase, &context, deadline).await {
            Ok((true, answer)) => Drive::Ended {
                purchase: Box::new(purchase),
                answer,
            },
            Ok((false, _)) => {
                tracing::info!(purchase.id = %purchase.id, step = ?purchase.saga.next(), "left unfinished for now");
                self.inner.store.give_up(&claim).await;
                Drive::Unfinished(Box::new(purchase))
            }
            Err(NotWritten::Overtaken) => {
                tracing::info!(purchase.id = %purchase.id, "somebody else drives this purchase");
                Drive::Overtaken
            }
            Err(NotWritten::Failed(error)) => {
                tracing::error!(purchase.id = %purchase.id, %error, "the book cannot be written");
                self.inner.store.give_up(&claim).await;
                Drive::Unfinished(Box::new(purchase))
            }
        }
    }

    /// Whether it is over, and the answer that was kept on the way.
    async fn go_round(
        &self,
        claim: &Claim,
        purchase: &mut Purchase,
        context: &CallContext,
        deadline: Instant,
    ) -> Result<(bool, Option<FinalAnswer>), NotWritten> {
        let mut answer = None;
        if purchase.cancel_requested && purchase.saga.cancel() {
            self.write(claim, purchase, &mut answer).await?;
        }
        let mut attempts = attempts_until(deadline);
        while let Some(step) = purchase.saga.next() {
            let outcome = self.take(step, purchase, context).await;
            let undecided = matches!(outcome, Outcome::Unknown | Outcome::Busy);
            let before = purchase.saga.clone();
            purchase.saga.record(step, outcome);
            if purchase.saga != before {
                self.write(claim, purchase, &mut answer).await?;
            }
            if undecided && purchase.saga.next().is_some() {
                if self.inner.shutdown.is_cancelled() || !attempts.again().await {
                    return Ok((false, answer));
                }
            } else {
                attempts = attempts_until(deadline);
            }
        }
        Ok((true, answer))
    }

    /// Takes a step, and passes the fault point behind it.
    async fn take(&self, step: Step, purchase: &mut Purchase, context: &CallContext) -> Outcome {
        let span = tracing::info_span!(
            "step",
            step = step.name(),
            purchase.id = %purchase.id,
            strategy = %purchase.terms.strategy,
            trace.id = context.trace_id(),
            outcome = tracing::field::Empty,
            duration_ms = tracing::field::Empty,
        );
        let asked = Instant::now();
        let taken = self
            .inner
            .steps
            .take(step, purchase, context)
            .instrument(span.clone())
            .await;
        span.record("duration_ms", asked.elapsed().as_secs_f64() * 1000.0);
        let spent = &mut purchase.timings;
        spent.lock_wait_ms += taken.timings.lock_wait_ms;
        spent.section_ms += taken.timings.section_ms;
        spent.payment_ms += taken.timings.payment_ms;
        spent.read_at = spent.read_at.or(taken.timings.read_at);
        spent.written_at = spent.written_at.or(taken.timings.written_at);

        let outcome = match fault_point(&taken.outcome) {
            // An injected error stands for an answer that did not arrive: the step is done, and nobody knows.
            Some(point) => {
                let id = purchase.id.as_str();
                match self.inner.faults.at(point, context).scope(id).hit().await {
                    Ok(_) => taken.outcome,
                    Err(_) => Outcome::Unknown,
                }
            }
            None => taken.outcome,
        };
        span.record("outcome", outcome.name());
        outcome
    }

    /// Writes down where the saga stands; with it, when it is over, the answer. If meanwhile somebody asked to
    /// call it off, the saga turns around here, and that is written too.
    async fn write(
        &self,
        claim: &Claim,
        purchase: &mut Purchase,
        answer: &mut Option<FinalAnswer>,
    ) -> Result<(), NotWritten> {
        loop {
            let at = now();
            let mut kept = None;
            if purchase.saga.next().is_none() {
                purchase.timings.total_ms = (at - purchase.created_at).num_milliseconds() as f64;
                kept = (self.inner.answer_of)(purchase);
            }
            let written = self.inner.store.record(claim, purchase, kept.as_ref(), at).await;
            match written.map_err(NotWritten::Failed)? {
                Recorded::Overtaken => return Err(NotWritten::Overtaken),
                Recorded::Kept { cancel_requested } => {
                    purchase.cancel_requested = cancel_requested;
                    if answer.is_none() {
                        *answer = kept;
                    }
                    if !(cancel_requested && purchase.saga.cancel()) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn attempts_until(deadline: Instant) -> Attempts {
    Attempts::within(deadline.saturating_duration_since(Instant::now()))
}

fn fault_point(outcome: &Outcome) -> Option<&'static str> {
    let Outcome::Done(done) = outcome else { return None };
    match done {
        Done::HoldPlaced { .. } => Some("checkout.after-hold"),
        Done::Authorized => Some("checkout.after-authorize"),
        Done::HoldConfirmed { .. } => Some("checkout.after-confirm"),
        Done::Captured => Some("checkout.after-capture"),
        Done::PaymentVoided | Done::HoldReleased | Done::Refunded => None,
    }
}
