//! The settling worker: finds payments that stand in an in-between status for too long and asks the processor
//! again, so that a payment is settled without its caller's help.
//!
//! Who left them behind does not matter (a crash, a lost connection, a gateway that was away). It enters the
//! same critical section by the same strategy as the request did. It has only the payment's id to go by, so it
//! asks with the *stable* key, whatever the request did. After `fresh` keys that is one more new key to the
//! processor: the bug of fresh keys does not end with the request.

use std::time::Duration;

use chrono::Utc;
use service_kit::CallContext;
use ticketing_types::PaymentKey;
use tokio_util::sync::CancellationToken;

use crate::domain::error::PaymentError;
use crate::domain::payments::{How, Operation, Payments};

/// Rows looked at in one go.
const BATCH_MAX: i64 = 64;
/// How long the worker waits for a lock: whoever has it is probably doing the very same thing.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The worker.
#[derive(Debug, Clone)]
pub(crate) struct Settler {
    pub(crate) payments: Payments,
    /// How long a row may stand in between before it counts as left behind.
    pub(crate) stale_after: Duration,
    pub(crate) every: Duration,
}

impl Settler {
    /// Until `shutdown` falls.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(self.every) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                result = self.run_once() => match result {
                    Ok(0) => {}
                    Ok(settled) => tracing::info!(settled, "settled what was left in between"),
                    Err(error) => tracing::warn!(%error, "cannot settle now, will try again"),
                }
            }
        }
    }

    /// One look; how many were settled. Ends early when the processor does not answer: the next row would
    /// wait for it just as long.
    pub(crate) async fn run_once(&self) -> Result<usize, PaymentError> {
        let before = Utc::now() - self.stale_after;
        let mut settled = 0;
        for row in self.payments.store.in_between_since(before, BATCH_MAX).await? {
            let how = How {
                context: CallContext::with_strategy(row.strategy),
                strategy: row.strategy,
                payment_key: PaymentKey::Stable,
                lock_wait: LOCK_WAIT,
            };
            let operation = Operation::Settle {
                attempt_id: row.attempt_id,
            };
            match self.payments.run(&how, &row.payment_id, &operation).await {
                Err(PaymentError::Unknown) => return Ok(settled),
                Err(error @ (PaymentError::Database(_) | PaymentError::Guard(_))) => return Err(error),
                // Every other outcome is one: the row is no longer in between, or somebody else is at it.
                result => {
                    tracing::debug!(payment.id = %row.payment_id, ok = result.is_ok(), "asked again");
                    settled += 1;
                }
            }
        }
        for refund in self
            .payments
            .store
            .pending_refunds_since(before, BATCH_MAX)
            .await?
        {
            match self
                .payments
                .settle_refund(&CallContext::default(), &refund)
                .await
            {
                Err(PaymentError::Unknown) => return Ok(settled),
                Err(error @ PaymentError::Database(_)) => return Err(error),
                _ => settled += 1,
            }
        }
        Ok(settled)
    }
}
