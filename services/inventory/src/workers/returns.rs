//! Gives stock back: of holds whose time is over, and of released holds that nobody could give back at once.
//!
//! Every instance runs it over the same database; that two of them end the same hold is harmless, since the
//! conditional update of its row lets one of them win (`store/finish.rs`).
//!
//! Holds that share strategy and events go back together, in one entry. Each such group is a task of its own,
//! because a group may wait long for its lock (behind a burst of buyers, or while the cluster has no leader), and
//! the other groups must not wait with it. A group that is still at it is not started again. The limits are per
//! strategy: while the cluster is away, the debts of `raft` fill theirs, and those of `atomic` are paid as ever.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ticketing_types::{EventId, Strategy};
use tokio::task::{Id, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::domain::Inventory;
use crate::store::{self, DueGroup};

/// Holds looked at in one go, of each strategy.
const DUE_MAX: u32 = 2_000;
/// Groups that may be at it at the same time, of each strategy.
const GROUPS_MAX: usize = 16;
/// How long whoever released a hold has for giving it back itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// What makes two groups the same work.
type Key = (Strategy, BTreeSet<EventId>);

/// The worker.
pub(crate) struct Returns {
    inventory: Inventory,
    at_it: JoinSet<()>,
    keys: HashMap<Id, Key>,
}

impl Returns {
    pub(crate) fn new(inventory: Inventory) -> Self {
        Self {
            inventory,
            at_it: JoinSet::new(),
            keys: HashMap::new(),
        }
    }

    /// Looks every `every` until `shutdown` falls. Who waits for a lock then is dropped: the stock stays owed, and
    /// the next start finds it. Who is inside goes on to the end.
    pub(crate) async fn run(mut self, every: Duration, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = ticks.tick() => {
                    if let Err(error) = self.start_due().await {
                        tracing::warn!(%error, "cannot look for holds that are due");
                    }
                }
                Some(_) = Self::one_done(&mut self.at_it, &mut self.keys) => {}
            }
        }
        self.at_it.shutdown().await;
    }

    /// Starts a task for each due group that has none.
    async fn start_due(&mut self) -> sqlx::Result<()> {
        let due = self.inventory.store.due(store::now(), PATIENCE, DUE_MAX).await?;
        for group in due {
            let key = (group.strategy, group.events.clone());
            let of_this_strategy = self.keys.values().filter(|(strategy, _)| *strategy == key.0);
            if of_this_strategy.count() >= GROUPS_MAX || self.keys.values().any(|at_it| *at_it == key) {
                continue;
            }
            let task = self.at_it.spawn(give_back(self.inventory.clone(), group));
            self.keys.insert(task.id(), key);
        }
        Ok(())
    }

    /// Waits until one task has ended, in whatever way; `None` if there is none.
    async fn one_done(at_it: &mut JoinSet<()>, keys: &mut HashMap<Id, Key>) -> Option<()> {
        let id = match at_it.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "giving holds back failed");
                error.id()
            }
        };
        keys.remove(&id);
        Some(())
    }
}

async fn give_back(inventory: Inventory, group: DueGroup) {
    let (wait, strategy, due) = (inventory.settings.lock_wait, group.strategy, group.holds.len());
    match inventory.give_back(group, wait).await {
        Ok(0) => {}
        Ok(holds) => tracing::debug!(holds, %strategy, "gave holds back"),
        // Nothing is lost: the next look finds them again.
        Err(error) => tracing::info!(%error, holds = due, %strategy, "holds stay owed"),
    }
}
