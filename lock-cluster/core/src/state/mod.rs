//! The state machine (its rules are being filled in; the signatures stand).

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::event::Event;
use crate::id::{AcquireId, SessionId};
use crate::limits::Limits;
use crate::reply::{AcquireAnswer, Reply};
use crate::time::ClusterTime;
use crate::view::{Counts, LockView, SessionView};

/// The replicated state.
#[derive(Debug)]
pub struct LockState {
    now: ClusterTime,
}

/// What applying one command brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// For the one who proposed it.
    pub reply: Reply,
    /// For everybody.
    pub events: Vec<Event>,
}

/// The whole state as a value to write down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot;

/// A snapshot that cannot have come from a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot contradicts itself: {0}")]
pub struct RestoreError(String);

impl Default for LockState {
    fn default() -> Self {
        Self::new()
    }
}

impl LockState {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::with_limits(Limits::STANDARD)
    }
    /// An empty cluster with other limits; every replica must be given the same ones.
    pub fn with_limits(_limits: Limits) -> Self {
        Self {
            now: ClusterTime::ZERO,
        }
    }
    /// Applies one command, stamped with cluster time by the leader.
    pub fn apply(&mut self, _at: ClusterTime, _command: Command) -> Applied {
        unimplemented!()
    }
    /// Cluster time as of the last command.
    pub fn now(&self) -> ClusterTime {
        self.now
    }
    /// The first moment at which an `Expire` would end something.
    pub fn next_deadline(&self) -> Option<ClusterTime> {
        None
    }
    /// Panics if the state is impossible.
    pub fn check_invariants(&self) {}
    /// A copy to write down.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot
    }
    /// The state that the copy was taken of.
    pub fn restore(_snapshot: Snapshot) -> Result<Self, RestoreError> {
        Ok(Self::new())
    }
    /// One lock; `None` if nobody holds it or waits for it.
    pub fn lock(&self, _name: &str) -> Option<LockView> {
        None
    }
    /// The locks whose name starts with `prefix`, in the order of their names.
    pub fn locks(&self, _prefix: &str, _limit: usize) -> Vec<LockView> {
        Vec::new()
    }
    /// One session.
    pub fn session(&self, _session_id: SessionId) -> Option<SessionView> {
        None
    }
    /// How an attempt stands; `None` if it is unknown or forgotten.
    pub fn acquisition(&self, _session_id: SessionId, _acquire_id: AcquireId) -> Option<AcquireAnswer> {
        None
    }
    /// How much there is.
    pub fn counts(&self) -> Counts {
        Counts::default()
    }
}
