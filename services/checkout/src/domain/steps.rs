//! The saga's steps as calls to inventory and billing, and their answers as outcomes.
//!
//! Each call is made once; asking again is the driver's business. What decides is [`CallError`]'s own
//! distinction between *not done*, *busy* and *unknown*; this file only adds what a refusal means for the saga.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use service_kit::peer::Call;
use service_kit::{Answer, CallContext, CallError, Peer, Problem};
use ticketing_types::billing::{AuthorizePayment, PaymentView, RefundPayment, RefundView};
use ticketing_types::checkout::PurchaseTimings;
use ticketing_types::inventory::{ConfirmedHold, HoldView, PlaceHold};
use ticketing_types::{HoldTtlMs, Money, PurchaseId, RefundId, SectionTimings};

use super::purchase::Purchase;
use super::saga::{Done, Outcome, Rejection, Step};

/// How often a step is tried that lost its lock each time.
const STALE_TRIES_MAX: u32 = 3;

/// The services that carry out the steps. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Steps {
    /// Holds and tickets.
    pub inventory: Peer,
    /// Payments.
    pub billing: Peer,
    /// How long a hold lasts.
    pub hold_ttl: HoldTtlMs,
    /// How long a call that waits for a contended lock may take: the wait itself, and the work after it. Shorter
    /// would be worse than useless: whoever asks again stands at the end of the queue again.
    pub lock_call_timeout: Duration,
}

/// A step, taken.
#[derive(Debug)]
pub struct Taken {
    /// What came of it.
    pub outcome: Outcome,
    /// Where the time went.
    pub timings: PurchaseTimings,
}

impl Steps {
    /// Takes one step of `purchase`.
    pub async fn take(&self, step: Step, purchase: &Purchase, context: &CallContext) -> Taken {
        let id = &purchase.id;
        match step {
            Step::PlaceHold => self.place_hold(purchase, context).await,
            Step::Authorize { amount } => self.authorize(purchase, amount, context).await,
            Step::ConfirmHold => self.confirm_hold(id, context).await,
            Step::Capture => self.capture(id, context).await,
            Step::VoidPayment => self.void_payment(id, context).await,
            Step::ReleaseHold => self.release_hold(id, context).await,
            Step::Refund { amount } => self.refund(id, amount, context).await,
        }
    }

    async fn place_hold(&self, purchase: &Purchase, context: &CallContext) -> Taken {
        let wish = PlaceHold {
            buyer: purchase.order.buyer.clone(),
            items: purchase.order.items.clone(),
            ttl_ms: Some(self.hold_ttl),
        };
        let call = self
            .inventory
            .put(format!("/v1/holds/{}", purchase.id))
            .json(&wish)
            .timeout(self.lock_call_timeout);
        match self.ask::<HoldView>(call, context).await {
            Ok(hold) => Taken {
                outcome: Outcome::Done(Done::HoldPlaced { amount: hold.amount }),
                timings: in_section(hold.timings),
            },
            Err(error) => untimed(refused_or(error, |problem| {
                let detail = problem.detail.clone().unwrap_or_default();
                match problem.slug.as_ref() {
                    "sold-out" => Rejection::SoldOut {
                        lines: problem.member("lines").unwrap_or_default(),
                    },
                    "limit-reached" => Rejection::LimitReached {
                        detail,
                        event_id: problem.member("event_id"),
                        limit: problem.member("limit"),
                    },
                    "unknown-event" => Rejection::UnknownEvent { detail },
                    "mixed-currencies" => Rejection::MixedCurrencies { detail },
                    "invalid-request" => Rejection::AmountOverflow { detail },
                    "hold-expired" => Rejection::HoldExpired,
                    _ => unexpected(problem),
                }
            })),
        }
    }

    async fn authorize(&self, purchase: &Purchase, amount: Money, context: &CallContext) -> Taken {
        let wish = AuthorizePayment {
            buyer: purchase.order.buyer.clone(),
            amount,
            card: purchase.order.card,
        };
        let call = self
            .billing
            .put(format!("/v1/payments/{}", purchase.id))
            .json(&wish);
        let payment = self.pay::<PaymentView>(call, context).await;
        payment.taken(
            |view| (Done::Authorized, view.timings),
            |error| {
                refused_or(error, |problem| match problem.slug.as_ref() {
                    "payment-declined" => Rejection::PaymentDeclined,
                    _ => unexpected(problem),
                })
            },
        )
    }

    async fn confirm_hold(&self, id: &PurchaseId, context: &CallContext) -> Taken {
        let call = self.inventory.post(format!("/v1/holds/{id}/confirm"));
        untimed(match self.ask::<ConfirmedHold>(call, context).await {
            Ok(hold) => Outcome::Done(Done::HoldConfirmed {
                tickets: hold.tickets,
            }),
            Err(error) => pivot_refused(error),
        })
    }

    async fn capture(&self, id: &PurchaseId, context: &CallContext) -> Taken {
        let call = self.billing.post(format!("/v1/payments/{id}/capture"));
        let payment = self.pay::<PaymentView>(call, context).await;
        payment.taken(|view| (Done::Captured, view.timings), never_refused)
    }

    async fn void_payment(&self, id: &PurchaseId, context: &CallContext) -> Taken {
        let call = self.billing.post(format!("/v1/payments/{id}/void"));
        let payment = self.pay::<PaymentView>(call, context).await;
        payment.taken(|view| (Done::PaymentVoided, view.timings), never_refused)
    }

    async fn release_hold(&self, id: &PurchaseId, context: &CallContext) -> Taken {
        // Giving stock back takes the same lock as taking it, and so the same patience.
        let call = self
            .inventory
            .delete(format!("/v1/holds/{id}"))
            .timeout(self.lock_call_timeout);
        untimed(match self.ask::<()>(call, context).await {
            Ok(()) => Outcome::Done(Done::HoldReleased),
            Err(error) => never_refused(error),
        })
    }

    async fn refund(&self, id: &PurchaseId, amount: Money, context: &CallContext) -> Taken {
        let wish = RefundPayment {
            id: refund_id(id),
            amount,
        };
        let call = self
            .billing
            .post(format!("/v1/payments/{id}/refunds"))
            .json(&wish);
        untimed(match self.ask::<RefundView>(call, context).await {
            Ok(_) => Outcome::Done(Done::Refunded),
            Err(error) => never_refused(error),
        })
    }

    /// Asks once; a few times if each time the other service lost its lock before it could write, since then
    /// nothing was written, and the next try takes the lock anew.
    async fn ask<T: DeserializeOwned>(&self, call: Call<'_>, context: &CallContext) -> Result<T, CallError> {
        let call = call.context(context);
        let mut tries = 1;
        loop {
            match call.send().await {
                Err(CallError::Refused { problem, .. }) if is_stale(&problem) && tries < STALE_TRIES_MAX => {
                    tries += 1
                }
                result => return result.map(|answer: Answer<T>| answer.body),
            }
        }
    }

    async fn pay<T: DeserializeOwned>(&self, call: Call<'_>, context: &CallContext) -> Paid<T> {
        let asked = Instant::now();
        let result = self.ask(call, context).await;
        Paid {
            result,
            took: asked.elapsed(),
        }
    }
}

/// A call to billing, timed.
struct Paid<T> {
    result: Result<T, CallError>,
    took: Duration,
}

impl<T> Paid<T> {
    fn taken(self, done: fn(T) -> (Done, SectionTimings), failed: fn(CallError) -> Outcome) -> Taken {
        let (outcome, section) = match self.result {
            Ok(view) => {
                let (done, section) = done(view);
                (Outcome::Done(done), section)
            }
            Err(error) => (failed(error), SectionTimings::default()),
        };
        let timings = PurchaseTimings {
            payment_ms: self.took.as_secs_f64() * 1000.0,
            ..in_section(section)
        };
        Taken { outcome, timings }
    }
}

/// The refund of a cancelled purchase: one per purchase, so a repeat is recognised.
fn refund_id(id: &PurchaseId) -> RefundId {
    RefundId::parse(format!("cancel-{id}")).expect("our own ids are UUIDs, and 43 characters fit")
}

fn in_section(timings: SectionTimings) -> PurchaseTimings {
    PurchaseTimings {
        lock_wait_ms: timings.lock_wait_ms,
        section_ms: timings.section_ms,
        read_at: timings.read_at,
        written_at: timings.written_at,
        ..PurchaseTimings::default()
    }
}

fn untimed(outcome: Outcome) -> Taken {
    Taken {
        outcome,
        timings: PurchaseTimings::default(),
    }
}

fn refused_or(error: CallError, refused: impl FnOnce(&Problem) -> Rejection) -> Outcome {
    match error {
        CallError::Refused { problem, .. } if may_come_back(&problem) => Outcome::Busy,
        CallError::Refused { problem, .. } => Outcome::Rejected(refused(&problem)),
        CallError::Busy { .. } | CallError::Unreachable { .. } => {
            tracing::debug!(%error, "not done yet");
            Outcome::Busy
        }
        CallError::Unknown { .. } => {
            tracing::debug!(%error, "asking again");
            Outcome::Unknown
        }
    }
}

/// At the pivot only inventory's own verdict on the hold turns the saga around: it says that there are no tickets
/// and never will be. An earlier attempt may have been confirmed without our hearing of it, and a refusal that is
/// about something else (the call was misrouted, or not understood) says nothing of that. Voiding the payment on
/// such a word would give tickets away; the step stays to be done instead, in everybody's sight.
fn pivot_refused(error: CallError) -> Outcome {
    let verdict = match &error {
        CallError::Refused { problem, .. } => match problem.slug.as_ref() {
            "hold-expired" => Some(Rejection::HoldExpired),
            slug @ ("hold-closed" | "hold-not-found") => Some(Rejection::Refused {
                slug: slug.to_owned(),
            }),
            _ => None,
        },
        _ => None,
    };
    match verdict {
        Some(why) => Outcome::Rejected(why),
        None => never_refused(error),
    }
}

/// For steps without a way back: a refusal is a contradiction between two books. The step stays to be done.
fn never_refused(error: CallError) -> Outcome {
    if let CallError::Refused { problem, .. } = &error
        && !may_come_back(problem)
    {
        tracing::error!(%error, "a step was refused that cannot be");
        return Outcome::Unknown;
    }
    refused_or(error, unexpected)
}

/// Refusals that say "not this time": the lock was lost before the write (nothing was written), or the service
/// names a time to come back.
fn may_come_back(problem: &Problem) -> bool {
    is_stale(problem) || problem.retry_after.is_some()
}

fn is_stale(problem: &Problem) -> bool {
    problem.slug == "stale-fencing-token"
}

fn unexpected(problem: &Problem) -> Rejection {
    tracing::error!(%problem, "an unexpected refusal");
    Rejection::Refused {
        slug: problem.slug.to_string(),
    }
}
