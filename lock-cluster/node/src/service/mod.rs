//! (signatures first; bodies follow)

mod error;
mod events;
mod status;

use std::collections::BTreeSet;
use std::marker::PhantomData;

use lock_core::{AcquireAnswer, AcquireId, Command, LockNames, LockState, Refusal, Reply, SessionId, WaitMs};

use crate::config::Member;
use crate::raft::{ServiceRt, Tokio};

pub use error::{Leader, ServiceError};
pub use events::{Compacted, EventFeed, FeedEvent, FeedItem};
pub use status::{MemberStatus, NodeStatus, Role};

/// How an acquire ended: a final answer (never `Queued`), or a refusal.
pub type Acquired = Result<AcquireAnswer, Refusal>;

/// The lock service of one node. Cheap to clone.
pub struct LockService<R: ServiceRt = Tokio> {
    runtime: PhantomData<fn() -> R>,
}

impl<R: ServiceRt> Clone for LockService<R> {
    fn clone(&self) -> Self {
        Self { runtime: PhantomData }
    }
}

impl<R: ServiceRt> LockService<R> {
    /// Puts a command into the leader's next batch and waits until it was applied.
    pub async fn propose(&self, _command: Command) -> Result<Reply, ServiceError> {
        Err(ServiceError::NoLeader)
    }

    /// Asks for all of `names` and waits up to `wait` in line. Dropping the future gives the place (or the
    /// grant nobody was told of) back in the background.
    pub async fn acquire(&self, _session_id: SessionId, _acquire_id: AcquireId, _names: LockNames, _wait: WaitMs) -> Result<Acquired, ServiceError> {
        Err(ServiceError::NoLeader)
    }

    /// Looks at the state as it is after everything that was answered before this call (ReadIndex).
    pub async fn read<T>(&self, _look: impl FnOnce(&LockState) -> T) -> Result<T, ServiceError> {
        Err(ServiceError::NoLeader)
    }

    /// What this node knows about itself, at once and without asking anyone.
    pub fn status(&self) -> NodeStatus {
        unimplemented!("bodies follow")
    }

    /// The applied events from log index `from` on; 0 means from now on.
    pub async fn events_from(&self, from: u64) -> Result<EventFeed, Compacted> {
        Err(Compacted { resume_from: from })
    }

    /// Adds a member that receives the log without voting.
    pub async fn add_learner(&self, _member: Member) -> Result<(), ServiceError> {
        Err(ServiceError::NoLeader)
    }

    /// Makes exactly these members the voters; each must be a member or learner already.
    pub async fn change_members(&self, _voters: BTreeSet<u64>) -> Result<(), ServiceError> {
        Err(ServiceError::NoLeader)
    }
}
