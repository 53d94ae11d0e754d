//! The calls to the card processor.
//!
//! Each call has an idempotency key, and the key is the *only* thing by which the processor tells a retry from
//! a second charge. So the whole question of charging once, after a lost reply, is how the key is made:
//!
//! * `stable`: derived from the payment's id. Asking again is the same call, and gets the same answer.
//! * `fresh`: a new one per attempt. Asking again charges again. This is the bug of real life (a retry helper
//!   that makes the key inside the loop), kept here to be shown and counted.
//!
//! An unknown outcome (time-out, dropped connection, 5xx) is asked about again a few times. What is unknown
//! after that stays unknown: the payment's row keeps its in-between status, and it is never called a decline.

use std::time::Duration;

use guard::Attempts;
use serde::Serialize;
use service_kit::{CallContext, CallError, Peer, Problem};
use ticketing_types::billing::AuthorizePayment;
use ticketing_types::gateway::{Authorize, Capture, LedgerEntry, Refund, Void};
use ticketing_types::{Money, PaymentId, PaymentKey, RefundId};
use uuid::Uuid;

/// How long one call may take. Cards that answer later are asked about again.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// How often one step is asked for within one request. Four seconds and a little at worst, less than callers
/// wait for us (5 s).
const TRIES_MAX: u32 = 4;

/// How the processor is asked.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) context: CallContext,
    pub(crate) payment_key: PaymentKey,
}

impl Asking {
    fn key(&self, payment: &PaymentId, step: &str) -> String {
        match self.payment_key {
            PaymentKey::Stable => format!("{payment}:{step}"),
            PaymentKey::Fresh => format!("{payment}:{step}:{}", Uuid::now_v7()),
        }
    }
}

/// What became of an authorization.
#[derive(Debug)]
pub(crate) enum Authorization {
    Done {
        authorization_id: String,
    },
    Declined,
    /// The reference was voided: nothing is reserved, and never will be.
    Closed,
    /// The key was used with another body: another request for the same payment was faster.
    Mismatch,
}

/// What became of a capture.
#[derive(Debug)]
pub(crate) enum Capturing {
    Done { capture_id: String },
    Voided,
}

/// What became of a void.
#[derive(Debug)]
pub(crate) enum Voiding {
    Done,
    Captured,
}

/// What became of a refund.
#[derive(Debug)]
pub(crate) enum Refunding {
    Done { refund_entry_id: String },
    Refused,
}

/// Perhaps done, perhaps not.
#[derive(Debug)]
pub(crate) struct OutcomeUnknown;

/// The card processor, over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Processor {
    peer: Peer,
}

impl Processor {
    pub(crate) fn new(peer: Peer) -> Self {
        Self { peer }
    }

    pub(crate) async fn authorize(
        &self,
        asking: &Asking,
        payment: &PaymentId,
        asked: &AuthorizePayment,
    ) -> Result<Authorization, OutcomeUnknown> {
        let call = |key| Authorize {
            key,
            reference: payment.clone(),
            card: asked.card,
            amount: asked.amount,
        };
        let answer = self
            .ask("/v1/authorizations", asking, || {
                call(asking.key(payment, "authorize"))
            })
            .await?;
        match answer {
            Ok(line) => Ok(Authorization::Done {
                authorization_id: line.id,
            }),
            Err(problem) => match problem.slug.as_ref() {
                "card-declined" => Ok(Authorization::Declined),
                "reference-closed" => Ok(Authorization::Closed),
                "key-reused" => Ok(Authorization::Mismatch),
                _ => Err(unexpected(&problem)),
            },
        }
    }

    pub(crate) async fn capture(
        &self,
        asking: &Asking,
        payment: &PaymentId,
        authorization_id: &str,
        amount: Money,
    ) -> Result<Capturing, OutcomeUnknown> {
        let call = |key| Capture {
            key,
            reference: payment.clone(),
            authorization_id: authorization_id.to_owned(),
            amount,
        };
        let answer = self
            .ask("/v1/captures", asking, || call(asking.key(payment, "capture")))
            .await?;
        match answer {
            Ok(line) => Ok(Capturing::Done { capture_id: line.id }),
            Err(problem) if problem.slug == "authorization-voided" => Ok(Capturing::Voided),
            Err(problem) => Err(unexpected(&problem)),
        }
    }

    /// Voids everything of this payment, an authorization that is still on its way included.
    pub(crate) async fn void(&self, asking: &Asking, payment: &PaymentId) -> Result<Voiding, OutcomeUnknown> {
        let call = |key| Void {
            key,
            reference: payment.clone(),
            authorization_id: None,
        };
        match self
            .ask("/v1/voids", asking, || call(asking.key(payment, "void")))
            .await?
        {
            Ok(_) => Ok(Voiding::Done),
            Err(problem) if problem.slug == "already-captured" => Ok(Voiding::Captured),
            Err(problem) => Err(unexpected(&problem)),
        }
    }

    /// Refunds always have a stable key: the axis `Payment-Key` is about charging, and the caller named the
    /// refund itself.
    pub(crate) async fn refund(
        &self,
        context: &CallContext,
        payment: &PaymentId,
        refund: &RefundId,
        amount: Money,
    ) -> Result<Refunding, OutcomeUnknown> {
        let asking = Asking {
            context: context.clone(),
            payment_key: PaymentKey::Stable,
        };
        let step = format!("refund:{refund}");
        let call = || Refund {
            key: asking.key(payment, &step),
            reference: payment.clone(),
            amount,
        };
        match self.ask("/v1/refunds", &asking, call).await? {
            Ok(line) => Ok(Refunding::Done {
                refund_entry_id: line.id,
            }),
            Err(problem) if problem.slug == "over-refund" => Ok(Refunding::Refused),
            Err(problem) => Err(unexpected(&problem)),
        }
    }

    /// Asks until there is an answer, a few times. `call` is made anew for each try: where the key is
    /// fresh, this is the line with the bug.
    async fn ask<B: Serialize>(
        &self,
        path: &str,
        asking: &Asking,
        call: impl Fn() -> B,
    ) -> Result<Result<LedgerEntry, Problem>, OutcomeUnknown> {
        let mut tries = Attempts::few(TRIES_MAX);
        loop {
            let call = self
                .peer
                .post(path)
                .context(&asking.context)
                .timeout(CALL_TIMEOUT)
                .json(&call());
            let error = match call.send::<LedgerEntry>().await {
                Ok(answer) => return Ok(Ok(answer.body)),
                Err(CallError::Refused { problem, .. }) => return Ok(Err(problem)),
                Err(error) => error,
            };
            tracing::debug!(path, %error, tries = tries.lost() + 1, "the card processor gave no answer");
            if !tries.again().await {
                tracing::warn!(path, %error, "what the card processor did stays unknown for now");
                return Err(OutcomeUnknown);
            }
        }
    }
}

/// A refusal that our own requests cannot get, unless one of the two programs is wrong. Nothing is concluded
/// from it: the row keeps its status, and the log says why.
fn unexpected(problem: &Problem) -> OutcomeUnknown {
    tracing::error!(%problem, "the card processor refused what it should not");
    OutcomeUnknown
}
