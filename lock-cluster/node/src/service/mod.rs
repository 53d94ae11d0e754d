//! The lock service of one node: requests become commands, applied commands become answers.
//!
//! ```text
//!  http ──► LockService ──► Queue ──► Batcher ──► raft (one entry a batch, two in flight)
//!               ▲                                   │ committed
//!               │  woken by apply                   ▼
//!            waiters ◄──────────── Replica (state, waiters, feed) ◄── on every node
//!                                     ▲
//!            Expiry (leader only) ────┘ proposes `Expire` when something is due
//! ```
//!
//! Three rules run through all of it:
//!
//! * **Nothing here decides.** Who gets a lock, who is too late, who is dead: apply decides, on every node alike.
//!   This layer carries questions in and answers out.
//! * **A command that was handed over has an unknown fate until it is applied.** It is never reported as failed.
//! * **Whoever hangs up leaves nothing behind.** Dropping an acquire at any `.await` gives its place up, or the
//!   grant that nobody was told of.
//!
//! Generic over the runtime, see [`ServiceRt`]; the constructors take what a simulation replaces.

mod backup;
mod batcher;
mod clock;
mod error;
mod events;
mod expiry;
mod giving_up;
mod replica;
mod status;
mod upkeep;
mod waiters;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::{
    AcquireAnswer, AcquireId, Command, Delivery, LockNames, LockState, Refusal, Reply, SessionId, WaitMs,
};
use rand::Rng as _;
use tokio::sync::Notify;

use self::batcher::{Batcher, Queue};
use self::expiry::Expiry;
use self::giving_up::GiveUpOnDrop;
use crate::config::Member;
use crate::faults::NodeFaults;
use crate::raft::{Consensus, ServiceRt, Tokio};

pub use backup::{Backup, BadBackup, TOKEN_MARGIN};
pub use clock::ClusterClock;
pub use error::{Leader, ServiceError};
pub use events::{Compacted, EventFeed, FeedEvent, FeedItem};
pub use replica::{Frozen, Observer, Replica};
pub use status::{MemberStatus, NodeStatus, Role};

/// How an acquire ended: a final answer (never `Queued`), or a refusal.
pub type Acquired = Result<AcquireAnswer, Refusal>;

/// How long a command may take altogether, in line and in Raft. Several batches' deadlines.
const PROPOSE_DEADLINE: Duration = Duration::from_secs(10);
/// How long after the end of a wait its end must have been applied: an election and then some. After that this node
/// stops waiting for it and calls the outcome unknown.
const WAIT_GRACE: Duration = Duration::from_secs(5);
/// How often a waiting request looks whether this node has been cut off.
const TOUCH_EVERY: Duration = Duration::from_secs(1);

/// The lock service of one node. Cheap to clone.
pub struct LockService<R: ServiceRt = Tokio> {
    inner: Arc<Inner<R>>,
}

struct Inner<R: ServiceRt> {
    consensus: Consensus<R>,
    replica: Arc<Replica>,
    queue: Arc<Queue>,
    stopped: Arc<Stopped>,
}

/// Said once, to all tasks of the service.
#[derive(Default)]
struct Stopped {
    flag: AtomicBool,
    notify: Notify,
}

impl<R: ServiceRt> Clone for LockService<R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<R: ServiceRt> LockService<R> {
    /// Starts the batcher, the expiry loop and the upkeep of a node whose consensus is running.
    pub fn start(
        consensus: Consensus<R>,
        replica: Arc<Replica>,
        clock: Arc<ClusterClock<R>>,
        faults: NodeFaults,
    ) -> Self {
        let (queue, batcher) = Batcher::new(consensus.clone(), clock.clone(), faults);
        let queue = Arc::new(queue);
        let stopped = Arc::new(Stopped::default());

        let until = stopped.clone();
        drop(R::spawn(
            batcher.run(async move { until.notify.notified().await }),
        ));
        let until = stopped.clone();
        let expiry = Expiry::new(consensus.clone(), clock, replica.clone(), queue.clone());
        drop(R::spawn(expiry.run(move || until.flag.load(Ordering::Relaxed))));

        let until = stopped.clone();
        let upkeep = upkeep::run(consensus.clone(), move || until.flag.load(Ordering::Relaxed));
        drop(R::spawn(upkeep));

        Self {
            inner: Arc::new(Inner {
                consensus,
                replica,
                queue,
                stopped,
            }),
        }
    }

    /// Ends the tasks. Whoever waits is told that the node shuts down, and so is whoever comes later.
    pub fn stop(&self) {
        self.inner.stopped.flag.store(true, Ordering::Relaxed);
        // A permit, not a broadcast: it also counts if the batcher has not begun to listen yet.
        self.inner.stopped.notify.notify_one();
        self.inner.replica.forget_all();
    }

    /// Puts a command into the leader's next batch and waits until it was applied.
    pub async fn propose(&self, command: Command) -> Result<Reply, ServiceError> {
        self.inner.consensus.leading()?;
        let answered = if self.will_stand_in_line(&command) {
            self.inner.queue.ask_in_line(command)?
        } else {
            self.inner.queue.ask(command)?
        };
        match R::timeout(PROPOSE_DEADLINE, answered).await {
            Ok(Ok(answer)) => answer,
            // The batcher is gone with the command in its hands, or the command is still on its way.
            Ok(Err(_)) | Err(_) => Err(ServiceError::Unknown),
        }
    }

    /// Whether it is an acquire that waits for somebody else, as far as the leader has applied. By the time it is
    /// applied itself that may be over, and it is granted all the same.
    fn will_stand_in_line(&self, command: &Command) -> bool {
        match command {
            Command::Acquire {
                session_id,
                acquire_id,
                names,
                wait,
                ..
            } if *wait > WaitMs::ZERO => self
                .inner
                .replica
                .look(|state| state.would_wait(*session_id, *acquire_id, names)),
            _ => false,
        }
    }

    /// Asks for all of `names` and waits up to `wait` in line. Dropping the future gives the place (or the grant
    /// nobody was told of) back in the background.
    #[tracing::instrument(
        name = "acquire", level = "debug", skip_all,
        fields(session.id = %session_id, acquire.id = %acquire_id, lock.name = %names, fencing_token)
    )]
    pub async fn acquire(
        &self,
        session_id: SessionId,
        acquire_id: AcquireId,
        names: LockNames,
        wait: WaitMs,
    ) -> Result<Acquired, ServiceError> {
        let delivery = Delivery::new(R::thread_rng().next_u64());
        let mut woken = self.inner.replica.register(session_id, acquire_id, delivery);
        let mut give_up = GiveUpOnDrop::new(
            &self.inner.replica,
            &self.inner.queue,
            session_id,
            acquire_id,
            delivery,
        );

        let acquired = match self
            .propose(Command::Acquire {
                session_id,
                acquire_id,
                names,
                wait,
                delivery,
            })
            .await
        {
            Ok(Reply::Acquire(AcquireAnswer::Queued)) => self.await_turn(&mut woken, wait).await,
            Ok(Reply::Acquire(answer)) => Ok(Ok(answer)),
            Ok(Reply::Refused(refusal)) => Ok(Err(refusal)),
            Ok(other) => unreachable!("an acquire is never answered with {other:?}"),
            // Not given up: the caller will ask again with the same id and find what became of it.
            Err(error) => Err(error),
        };
        give_up.disarm();
        if let Ok(Ok(AcquireAnswer::Granted { fencing_token, .. })) = &acquired {
            tracing::Span::current().record("fencing_token", fencing_token.get());
        }
        acquired
    }

    /// Waits until apply says how a queued acquire ended.
    async fn await_turn(
        &self,
        woken: &mut tokio::sync::oneshot::Receiver<Acquired>,
        wait: WaitMs,
    ) -> Result<Acquired, ServiceError> {
        let began = R::now();
        let patience = Duration::from_millis(wait.get()) + WAIT_GRACE;
        loop {
            match R::timeout(TOUCH_EVERY, &mut *woken).await {
                Ok(Ok(acquired)) => return Ok(acquired),
                Ok(Err(_forgotten)) => return Err(ServiceError::ShuttingDown),
                Err(_) if R::since(began) > patience || self.inner.consensus.is_out_of_touch() => {
                    return Err(ServiceError::Unknown);
                }
                Err(_) => {}
            }
        }
    }

    /// Looks at the state as it is after everything that was answered before this call (ReadIndex).
    pub async fn read<T>(&self, look: impl FnOnce(&LockState) -> T) -> Result<T, ServiceError> {
        self.inner.consensus.read_index().await?;
        Ok(self.inner.replica.look(look))
    }

    /// Looks at this node's own state, which may be behind the cluster, and says from which index the events go on
    /// behind it: for a reader of the feed whose history is gone.
    pub fn look<T>(&self, look: impl FnOnce(&LockState) -> T) -> (u64, T) {
        self.inner.replica.look_with_position(look)
    }

    /// What this node knows about itself, at once and without asking anyone.
    pub fn status(&self) -> NodeStatus {
        let consensus = self.inner.consensus.status();
        let (cluster_time, counts) = self.inner.replica.look(|state| (state.now(), state.counts()));
        NodeStatus {
            id: self.inner.consensus.id(),
            cluster: consensus.cluster,
            role: consensus.role,
            term: consensus.term,
            leader: consensus.leader,
            last_log: consensus.last_log,
            committed: consensus.committed,
            applied: consensus.applied,
            snapshot: consensus.snapshot,
            members: consensus.members,
            changing: consensus.changing,
            lag: consensus.lag,
            cluster_time,
            counts,
            waiting_here: self.inner.replica.waiting(),
            queued_here: self.inner.queue.len(),
        }
    }

    /// Whether a command would find somebody who leads. A leader that has lost its majority does not, though it may
    /// still call itself one.
    pub(crate) fn is_led(&self) -> bool {
        self.status().leader.is_some() && !self.inner.consensus.is_out_of_touch()
    }

    /// How often the log has called fdatasync since this node's start.
    pub(crate) fn log_syncs(&self) -> u64 {
        self.inner.consensus.log_syncs()
    }

    /// The applied events from log index `from` on.
    pub async fn events_from(&self, from: u64) -> Result<EventFeed, Compacted> {
        self.inner.replica.feed(from)
    }

    /// The applied events from now on.
    pub fn events(&self) -> EventFeed {
        self.inner.replica.feed_from_now()
    }

    /// Adds a member that receives the log without voting.
    pub async fn add_learner(&self, member: Member) -> Result<(), ServiceError> {
        self.inner.consensus.add_learner(&member).await
    }

    /// Makes a member a voter, once it has caught up with the log.
    pub async fn promote(&self, id: u64) -> Result<(), ServiceError> {
        self.inner.consensus.promote(id).await
    }

    /// Removes a member. A leader may remove itself: it hands over when that is committed.
    pub async fn remove_member(&self, id: u64) -> Result<(), ServiceError> {
        self.inner.consensus.remove(id).await
    }

    /// Makes exactly these members the voters; each must be a member or learner already. A voter that is left out
    /// is removed.
    pub async fn change_members(&self, voters: BTreeSet<u64>) -> Result<(), ServiceError> {
        self.inner.consensus.change_members(voters).await
    }

    /// Takes a snapshot now, instead of when enough entries have come together.
    pub async fn snapshot_now(&self) -> Result<(), ServiceError> {
        self.inner.consensus.snapshot_now().await
    }
}
