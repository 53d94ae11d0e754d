//! The settling worker: finds payments that stand in an in-between status for too long and asks the processor
//! again, so that a payment is settled without its caller's help.
//!
//! Who left them behind does not matter (a crash, a lost connection, a gateway that was away). It enters the
//! same critical section by the same strategy as the request did. It has only the payment's id to go by, so it
//! asks with the *stable* key, whatever the request did. After `fresh` keys that is one more new key to the
//! processor: the bug of fresh keys does not end with the request.
//!
//! One that the processor never answers for must not keep the others waiting. A payment asked about in vain goes to the
//! end of the line (its row is written again); a refund gets a next time of its own, each time twice as far away.

use std::time::Duration;

use chrono::{DateTime, Utc};
use guard::GuardError;
use service_kit::CallContext;
use ticketing_types::PaymentKey;
use tokio_util::sync::CancellationToken;

use crate::domain::error::PaymentError;
use crate::domain::payment::Payment;
use crate::domain::payments::{How, Operation, Payments, Settled};

/// Rows looked at in one go.
const BATCH_MAX: i64 = 64;
/// How long the worker waits for a lock: whoever has it is probably doing the very same thing.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The longest time between two tries of a refund.
const NEXT_TRY_MAX: Duration = Duration::from_secs(300);

/// Locks that were waited for in vain, after which a round leaves the other payments for the next one.
const WAITS_MAX: usize = 4;

/// What one look brought.
#[derive(Debug, Default)]
struct Round {
    settled: usize,
    /// Payments whose section could not be entered, refunds without an answer.
    left: usize,
}

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
                    Ok(Round { settled: 0, left: 0 }) => {}
                    Ok(Round { settled, left: 0 }) => tracing::info!(settled, "settled what was left in between"),
                    Ok(Round { settled, left }) => {
                        tracing::warn!(settled, left, "some payments cannot be settled now, will try again");
                    }
                    Err(error) => tracing::warn!(%error, "cannot settle now, will try again"),
                }
            }
        }
    }

    /// One look at payments, one at refunds. Each ends early when the processor does not answer: whatever comes next
    /// would wait for it just as long.
    async fn run_once(&self) -> Result<Round, PaymentError> {
        let before = Utc::now() - self.stale_after;
        let mut round = Round::default();
        self.settle_payments(before, &mut round).await?;
        self.settle_refunds(before, &mut round).await?;
        Ok(round)
    }

    async fn settle_refunds(&self, before: DateTime<Utc>, round: &mut Round) -> Result<(), PaymentError> {
        let refunds = self.payments.store.pending_refunds_since(before, BATCH_MAX);
        for refund in refunds.await? {
            let context = CallContext::default();
            match self.payments.settle_refund(&context, &refund).await {
                Err(PaymentError::Unknown) => {
                    let next_try_at = Utc::now() + pause_after(self.stale_after, refund.tries);
                    self.payments.store.postpone_refund(&refund, next_try_at).await?;
                    round.left += 1;
                    return Ok(());
                }
                Err(error @ PaymentError::Database(_)) => return Err(error),
                _ => round.settled += 1,
            }
        }
        Ok(())
    }

    /// A section that cannot be entered holds up itself only. A guard that is away is not asked again in this round:
    /// each time may take as long as the wait for a lock. Its payments are passed over, or a batch full of them would
    /// hide all others behind it.
    async fn settle_payments(&self, before: DateTime<Utc>, round: &mut Round) -> Result<(), PaymentError> {
        let mut away = Vec::new();
        let mut waits = 0;
        loop {
            let away_before = away.len();
            let rows = self
                .payments
                .store
                .in_between_since(before, &away, BATCH_MAX)
                .await?;
            for row in rows {
                if away.contains(&row.strategy) || waits >= WAITS_MAX {
                    round.left += 1;
                    continue;
                }
                match self.settle(&row).await {
                    Err(PaymentError::Unknown) => return Ok(()),
                    Err(error @ PaymentError::Database(_)) => return Err(error),
                    Err(PaymentError::Guard(error)) => {
                        tracing::debug!(payment.id = %row.payment_id, %error, "left for a later round");
                        round.left += 1;
                        match error {
                            GuardError::WaitTimeout => waits += 1,
                            GuardError::LockUnavailable { .. }
                            | GuardError::LockRefused
                            | GuardError::StrategyUnavailable { .. } => away.push(row.strategy),
                        }
                    }
                    // Every other outcome is one: the row is no longer in between, or somebody else is at it.
                    result => {
                        tracing::debug!(payment.id = %row.payment_id, ok = result.is_ok(), "asked again");
                        round.settled += 1;
                    }
                }
            }
            // Each further look leaves out one strategy more, so there are few.
            if away.len() == away_before || waits >= WAITS_MAX {
                return Ok(());
            }
        }
    }

    async fn settle(&self, row: &Payment) -> Result<Settled, PaymentError> {
        let how = How {
            context: CallContext::with_strategy(row.strategy),
            strategy: row.strategy,
            payment_key: PaymentKey::Stable,
            lock_wait: LOCK_WAIT,
        };
        let operation = Operation::Settle {
            attempt_id: row.attempt_id.clone(),
        };
        self.payments.run(&how, &row.payment_id, &operation).await
    }
}

/// How long a refund is left alone that was asked for in vain, after `tries` vain ones before.
fn pause_after(first: Duration, tries: i32) -> Duration {
    let doubled = 2_u32.saturating_pow(tries.unsigned_abs());
    first.saturating_mul(doubled).min(NEXT_TRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refund_is_asked_for_ever_later_up_to_a_bound() {
        let first = Duration::from_secs(5);
        let pauses = [0, 1, 2, 5, 6, i32::MAX].map(|tries| pause_after(first, tries).as_secs());
        assert_eq!(pauses, [5, 10, 20, 160, 300, 300]);
    }
}
