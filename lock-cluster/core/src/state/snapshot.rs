//! The state as a value to write down, and back.
//!
//! A snapshot holds what cannot be derived, and nothing else: lines and deadlines are rebuilt from the
//! acquisitions, so a snapshot cannot contradict itself about who is first. What it *can* get wrong (bytes
//! rot, programs are mixed up) is checked before it is used: a node must not start on a state in which two
//! hold the same lock.
//!
//! The version is the first thing in the encoding. A change of layout adds a variant and a conversion from
//! the one before; it never edits a variant that was released. The remembered answers are part of it: a
//! node that has its state from a snapshot must answer a retry like one that has applied the whole log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{FencingToken, SessionId};
use crate::limits::Limits;
use crate::time::ClusterTime;

use super::LockState;
use super::line::Arrival;
use super::session::Session;

/// The whole state at one moment. Equal states give equal snapshots, and equal bytes in an encoding that
/// keeps order, such as postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot(Versioned);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Versioned {
    V1(V1),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct V1 {
    limits: Limits,
    now: ClusterTime,
    last_token: FencingToken,
    last_arrival: Arrival,
    sessions: BTreeMap<SessionId, Session>,
}

/// A snapshot that no state can have been written down as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot contradicts itself: {0}")]
pub struct RestoreError(String);

impl LockState {
    /// A copy to write down. It shares names with the state, and may be encoded on another thread while
    /// the state goes on.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(Versioned::V1(V1 {
            limits: self.limits,
            now: self.now,
            last_token: self.last_token,
            last_arrival: self.last_arrival,
            sessions: self.sessions.clone(),
        }))
    }

    /// The state that the copy was taken of.
    pub fn restore(snapshot: Snapshot) -> Result<Self, RestoreError> {
        let Snapshot(Versioned::V1(V1 {
            limits,
            now,
            last_token,
            last_arrival,
            sessions,
        })) = snapshot;
        super::invariants::check_sources(&sessions).map_err(RestoreError)?;
        let state = Self::with_sessions(limits, now, last_token, last_arrival, sessions);
        state
            .violation()
            .map_or(Ok(state), |violation| Err(RestoreError(violation)))
    }
}
