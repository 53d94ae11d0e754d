//! What happened, for everybody else: the waiter to be woken, the feed, the page.
//!
//! Every node computes the same events in the same order; a node acts on one only where somebody waits
//! for it. Within one command, first come those who leave, then those who are granted what became free.

use serde::{Deserialize, Serialize};

use crate::id::{AcquireId, FencingToken, SessionId};
use crate::name::{Label, LockNames};
use crate::time::TtlMs;

/// One thing that happened while a command was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A session began.
    SessionOpened {
        /// Whose.
        session_id: SessionId,
        /// As it was opened.
        ttl: TtlMs,
        /// As it was opened.
        label: Label,
    },
    /// A session ended. What it held and waited for was given up in the events just before this one.
    SessionClosed {
        /// Whose.
        session_id: SessionId,
        /// Who ended it.
        reason: SessionEnd,
    },
    /// An acquisition got a place in line.
    Queued {
        /// Whose.
        session_id: SessionId,
        /// Which attempt.
        acquire_id: AcquireId,
        /// What it waits for.
        names: LockNames,
    },
    /// An acquisition got all its names: at once, or after it stood in line.
    Granted {
        /// Whose.
        session_id: SessionId,
        /// Which attempt.
        acquire_id: AcquireId,
        /// Higher than all tokens before.
        fencing_token: FencingToken,
        /// What it holds now.
        names: LockNames,
    },
    /// An acquisition holds no longer.
    Released {
        /// Whose.
        session_id: SessionId,
        /// Which attempt.
        acquire_id: AcquireId,
        /// Under which token it was held.
        fencing_token: FencingToken,
        /// What it held.
        names: LockNames,
        /// Why.
        reason: ReleaseReason,
    },
    /// An acquisition left the line without a grant.
    WaitEnded {
        /// Whose.
        session_id: SessionId,
        /// Which attempt.
        acquire_id: AcquireId,
        /// What it waited for.
        names: LockNames,
        /// Why.
        reason: WaitEnd,
    },
}

/// Who ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SessionEnd {
    /// Its client.
    Closed,
    /// Time.
    Expired,
}

/// Why an acquisition holds no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReleaseReason {
    /// Its client released it.
    Released,
    /// A node gave it up, the client being gone.
    Abandoned,
    /// An administrator broke it.
    Broken,
    /// Its session was closed.
    SessionClosed,
    /// Its session died.
    SessionExpired,
}

/// Why an acquisition left the line without a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WaitEnd {
    /// It waited as long as it may.
    TimedOut,
    /// Its client gave up its place.
    Released,
    /// A node gave it up, the client being gone.
    Abandoned,
    /// Its session was closed.
    SessionClosed,
    /// Its session died.
    SessionExpired,
}
