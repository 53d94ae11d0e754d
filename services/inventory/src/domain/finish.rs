//! How holds end: they become tickets, somebody gives them back, or time does. Each exactly once.
//!
//! **Confirm** touches no stock: what was held is now sold, and both are counted. It races with release and
//! expiry for the hold's row alone, and needs no lock for that.
//!
//! **Giving back** increments `available`, and so belongs into the same critical section as taking: between the
//! locked read and the absolute write of a buyer, an unlocked increment would be overwritten and the tickets would
//! be gone for ever. The lock may not be had at once, though: a thousand buyers queue for it, or the cluster has
//! no leader. Hence two steps:
//!
//! 1. `placed → releasing`, one update without any lock. From here on the stock is **owed**: no confirm can find
//!    the hold placed, and the debt survives any crash.
//! 2. `releasing → released` and the increment, in one transaction inside the section. Its conditional update lets
//!    exactly one pay, however many try: the request that released, the workers of both instances, a retry.
//!
//! `DELETE` answers 204 after the first step. It tries the second itself for a moment; if the section is not free
//! by then, the worker pays. Until then the tickets count as held, which is true.
//!
//! **Expiry** needs the second step only (`placed → expired`, if the time is over), because time itself has taken
//! the first: a confirm asks for `expires_at > now`.

use std::time::Duration;

use guard::{Entry, GuardError};
use service_kit::CallContext;
use ticketing_types::inventory::{ConfirmedHold, HoldStatus};
use ticketing_types::{HoldId, Strategy};
use tokio::time::timeout;

use super::error::{ConfirmError, GiveBackError, ReleaseError};
use super::{AFTER_CONFIRM, Inventory, again_while_busy, lock_name};
use crate::store::{self, Confirmation, DueGroup, GiveBack, Release};

/// How long a release waits for the section before it leaves the rest to the worker. (Not passed on to the lock:
/// a cluster that is away takes longer than the wait to say so.)
const RELEASE_WAIT: Duration = Duration::from_millis(1_000);
/// Holds that are ended in one transaction. Bounds how long an event's row is locked.
const HOLDS_PER_TRANSACTION: usize = 50;

impl Inventory {
    /// Turns a hold into tickets; a hold that already is gives the same tickets again.
    pub(crate) async fn confirm(
        &self,
        id: &HoldId,
        context: &CallContext,
    ) -> Result<ConfirmedHold, ConfirmError> {
        let (confirmed, now_done) = again_while_busy(|| self.confirm_once(id)).await?;
        if now_done {
            let reached = self.faults.at(AFTER_CONFIRM, context).scope(id.as_str());
            reached.hit().await.map_err(ConfirmError::Injected)?;
        }
        Ok(confirmed)
    }

    async fn confirm_once(&self, id: &HoldId) -> Result<(ConfirmedHold, bool), ConfirmError> {
        if let Confirmation::Confirmed(tickets) = self.store.confirm(id, store::now()).await? {
            return Ok((
                ConfirmedHold {
                    id: id.clone(),
                    tickets,
                },
                true,
            ));
        }
        let Some(hold) = self.store.find_hold(id).await? else {
            return Err(ConfirmError::NotFound);
        };
        match hold.status {
            HoldStatus::Confirmed => {
                let tickets = self.store.tickets(id).await?;
                Ok((
                    ConfirmedHold {
                        id: id.clone(),
                        tickets,
                    },
                    false,
                ))
            }
            HoldStatus::Closed | HoldStatus::Releasing | HoldStatus::Released => Err(ConfirmError::Closed),
            // Still placed and yet not confirmed: its time is over.
            HoldStatus::Expired | HoldStatus::Placed => Err(ConfirmError::Expired),
        }
    }

    /// Gives a hold back. `strategy` is only noted, for an id that was never seen; a real hold goes back the way
    /// it came.
    pub(crate) async fn release(&self, id: &HoldId, strategy: Strategy) -> Result<(), ReleaseError> {
        let released = again_while_busy(|| self.store.release(id, strategy, store::now())).await?;
        match released {
            Release::Closed => Ok(()),
            Release::Owed(debt) => {
                match self.give_back(debt, RELEASE_WAIT).await {
                    Ok(_) => {}
                    Err(error) => {
                        tracing::info!(%error, hold.id = %id, "the worker will give this hold back")
                    }
                }
                Ok(())
            }
            Release::NotPlaced => match self.store.find_hold(id).await?.map(|hold| hold.status) {
                Some(HoldStatus::Confirmed) => Err(ReleaseError::Confirmed),
                Some(
                    HoldStatus::Releasing | HoldStatus::Released | HoldStatus::Expired | HoldStatus::Closed,
                ) => Ok(()),
                // The store has just seen otherwise, and no hold becomes placed again. Still, whatever happens, a
                // hold that stands is not called given back.
                Some(HoldStatus::Placed) | None => Err(ReleaseError::StillPlaced),
            },
        }
    }

    /// Gives the stock of a group of holds back, inside their section, waiting at most `wait` for it. Answers how
    /// many holds this call has ended.
    pub(crate) async fn give_back(&self, group: DueGroup, wait: Duration) -> Result<usize, GiveBackError> {
        let names: Vec<_> = group.events.iter().map(lock_name).collect();
        let entering = self.guards.enter(group.strategy, &names, wait);
        let entry = timeout(wait, entering)
            .await
            .map_err(|_| GuardError::WaitTimeout)??;
        let inside = {
            let inventory = self.clone();
            async move { inventory.give_back_inside(&entry, &group.holds).await }
        };
        let given = self.to_its_end(inside).await;
        if let Err(GiveBackError::StaleToken(event_id)) = &given {
            self.note_stale_token(event_id).await;
        }
        given
    }

    async fn give_back_inside(&self, entry: &Entry, holds: &[HoldId]) -> Result<usize, GiveBackError> {
        let mut ended = 0;
        for holds in holds.chunks(HOLDS_PER_TRANSACTION) {
            let given = again_while_busy(|| self.store.give_back(entry.rule, holds, store::now())).await?;
            match given {
                GiveBack::Done(holds) => ended += holds,
                GiveBack::Stale(event_id) => return Err(GiveBackError::StaleToken(event_id)),
            }
        }
        Ok(ended)
    }
}
