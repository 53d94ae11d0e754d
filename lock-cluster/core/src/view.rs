//! What a reader is shown of the state: plain values, for the list of locks, the page and the metrics.

use crate::id::{AcquireId, FencingToken, SessionId};
use crate::name::{Label, LockName};
use crate::time::{ClusterTime, TtlMs};

/// One lock, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// Which.
    pub name: LockName,
    /// Who holds it. `None` while the first in line still waits for another one of its names.
    pub holder: Option<HolderView>,
    /// Who stands in line, the next one first: all of them, or as many as were asked for.
    pub waiters: Vec<WaiterView>,
    /// How many stand in line altogether.
    pub waiters_total: usize,
}

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// Whose.
    pub session_id: SessionId,
    /// What its session is called.
    pub label: Label,
    /// By which attempt.
    pub acquire_id: AcquireId,
    /// Under which token.
    pub fencing_token: FencingToken,
    /// For how long by now, in cluster time.
    pub held_ms: u64,
}

/// One who stands in line for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// Whose.
    pub session_id: SessionId,
    /// What its session is called.
    pub label: Label,
    /// By which attempt.
    pub acquire_id: AcquireId,
    /// When it may wait no longer.
    pub waits_until: ClusterTime,
}

/// One session, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Which.
    pub session_id: SessionId,
    /// What it is called.
    pub label: Label,
    /// How long it lives after each keep-alive.
    pub ttl: TtlMs,
    /// Its last moment unless it is kept alive.
    pub expires_at: ClusterTime,
    /// Up to where the client is done with its ids.
    pub acknowledged: Option<AcquireId>,
    /// How many acquisitions are remembered for it, live and finished.
    pub acquisitions: usize,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Open sessions.
    pub sessions: usize,
    /// Names held or waited for.
    pub locks: usize,
    /// Acquisitions that hold.
    pub holders: usize,
    /// Acquisitions that stand in line.
    pub waiters: usize,
    /// Acquisitions remembered: holders, waiters, and finished ones.
    pub acquisitions: usize,
}
