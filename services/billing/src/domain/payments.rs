//! [`Payments`]: into the critical section, and out of it.
//!
//! The part inside the lock runs in a task of its own. A caller that hangs up must not stop a charge between
//! the gateway's answer and our record of it; a caller that hangs up while still *waiting* for the lock
//! gives its place back.

use std::time::Duration;

use guard::{Attempts, Guards};
use service_kit::{CallContext, Faults};
use ticketing_types::billing::AuthorizePayment;
use ticketing_types::{PaymentId, PaymentKey, SectionTimings, Strategy};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::error::PaymentError;
use super::payment::Payment;
use super::processor::{Asking, Processor};
use super::section::Section;
use crate::store::Store;

/// How long a request goes on looking at what others are doing to its payment, before its caller is told to come
/// back.
const CLAIM_WAIT: Duration = Duration::from_secs(4);

/// How a request wants to be handled.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) context: CallContext,
    pub(crate) strategy: Strategy,
    pub(crate) payment_key: PaymentKey,
    pub(crate) lock_wait: Duration,
}

impl How {
    pub(super) fn asking(&self) -> Asking {
        Asking {
            context: self.context.clone(),
            payment_key: self.payment_key,
        }
    }
}

/// What to do with a payment.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Authorize(AuthorizePayment),
    Capture,
    Void,
    /// Ask again about a row that was left in an in-between status.
    Settle {
        attempt_id: String,
    },
}

/// A payment after an operation.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) payment: Payment,
    /// It was done just now, not found done.
    pub(crate) now: bool,
    pub(crate) timings: SectionTimings,
}

/// Payments: the sections and what they need.
#[derive(Debug, Clone)]
pub(crate) struct Payments {
    pub(crate) store: Store,
    pub(crate) guards: Guards,
    pub(crate) processor: Processor,
    pub(crate) faults: Faults,
    /// Work that goes on when its caller hangs up; waited for at the end of the process.
    pub(crate) tasks: TaskTracker,
}

impl Payments {
    /// Does `operation` inside the payment's critical section.
    pub(crate) async fn run(
        &self,
        how: &How,
        id: &PaymentId,
        operation: &Operation,
    ) -> Result<Settled, PaymentError> {
        let names = [format!("payment/{id}")];
        let mut attempts = None;
        let mut timings = SectionTimings::default();
        loop {
            let entry = self.guards.enter(how.strategy, &names, how.lock_wait).await?;
            timings.lock_wait_ms += entry.waited.as_secs_f64() * 1000.0;
            let section = Section {
                payments: self.clone(),
                entry,
                how: how.clone(),
                id: id.clone(),
            };
            let operation = operation.clone();
            let work = async move {
                let result = section.run(&operation).await;
                // The lock is given back with the section; nobody needs to wait for that.
                (result, section.entry.inside())
            };
            let (result, inside) = self.detached(work).await;
            timings.section_ms += inside.as_secs_f64() * 1000.0;
            match result {
                // Somebody else was faster: one of many without a lock, or a holder that has lost it. Look again, a
                // little later. The patience begins here: waiting for the lock is another one.
                Err(PaymentError::InProgress) => {
                    let patience = || Attempts::within(CLAIM_WAIT.min(how.lock_wait));
                    if !attempts.get_or_insert_with(patience).again().await {
                        return Err(PaymentError::InProgress);
                    }
                }
                Err(error) => return Err(error),
                Ok((payment, now)) => {
                    return Ok(Settled {
                        payment,
                        now,
                        timings,
                    });
                }
            }
        }
    }

    /// Runs work to its end, also when the caller goes away meanwhile.
    pub(crate) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.tasks.spawn(work.in_current_span()).await {
            Ok(result) => result,
            // Nobody aborts these tasks, so this is a panic, and it belongs to the caller.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
