//! The leader's ticking: time passes for the replicated state only when somebody says so.
//!
//! Every node runs this loop; it acts only on the one that leads, and even there it decides nothing. It proposes
//! `Expire`, which says "it is now so late", and *applying* that ends sessions and waits. A keep-alive that is
//! ordered before it therefore wins on every replica alike, and a leader that was deposed without knowing ends
//! nobody: its proposal is never committed.
//!
//! It proposes in three cases:
//! * something is due;
//! * half a second has passed for open sessions without any command stamping time. Without this tick a quiet cluster's
//!   time would stand where the last command left it, and an election would restart it from there: sessions of
//!   vanished clients would get those quiet minutes as a gift;
//! * it has just become leader. That first batch also announces it in the feed.

use std::sync::Arc;
use std::time::Duration;

use lock_core::Command;

use super::batcher::Queue;
use super::{ClusterClock, Replica};
use crate::raft::{Consensus, ServiceRt};

/// How often it looks. Part of the bound "gone within TTL + 1 s".
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest that cluster time stands still while sessions exist. An election loses as much of it at most, which is
/// part of the bound, too.
const TICK_MS: u64 = 500;

pub(super) struct Expiry<R: ServiceRt> {
    consensus: Consensus<R>,
    clock: Arc<ClusterClock<R>>,
    replica: Arc<Replica>,
    queue: Arc<Queue>,
    /// The last term in which this node has proposed something as leader.
    greeted: Option<u64>,
}

impl<R: ServiceRt> Expiry<R> {
    pub(super) fn new(
        consensus: Consensus<R>,
        clock: Arc<ClusterClock<R>>,
        replica: Arc<Replica>,
        queue: Arc<Queue>,
    ) -> Self {
        Self {
            consensus,
            clock,
            replica,
            queue,
            greeted: None,
        }
    }

    /// Runs until `stopped` says so.
    pub(super) async fn run(mut self, stopped: impl Fn() -> bool + Send) {
        while !stopped() {
            self.look().await;
            R::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&mut self) {
        let Ok(term) = self.consensus.leading() else {
            return;
        };
        // Not set yet: the first entry of the term is on its way, and with it the time to go on from.
        let Some(now) = self.clock.now(term) else { return };
        let wanted = self.greeted != Some(term)
            || self.replica.look(|state| {
                let due = state.next_deadline().is_some_and(|deadline| deadline <= now);
                let quiet = state.counts().sessions > 0 && now.ms_since(state.now()) >= TICK_MS;
                due || quiet
            });
        if !wanted {
            return;
        }
        // Waiting for the outcome keeps this to one proposal at a time, however late the disk is. An error needs no
        // care: what was due still is, and whoever leads by then will look.
        let Ok(proposed) = self.queue.ask_from_reserve(Command::Expire) else {
            return;
        };
        if matches!(proposed.await, Ok(Ok(_))) {
            self.greeted = Some(term);
        }
    }
}
