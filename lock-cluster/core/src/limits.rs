//! A limit on everything, so that no client can grow the replicated state without bound.
//!
//! Each replica must refuse exactly what the others refuse, so the limits are constants of the program
//! and travel inside the snapshot; they are no setting of a node. Tests build a state with small
//! [`Limits`] to get near them.

use serde::{Deserialize, Serialize};

/// Bytes of a lock name.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a session's label.
pub const LABEL_BYTES_MAX: usize = 128;
/// Names of one acquisition.
pub const NAMES_PER_ACQUISITION_MAX: usize = 16;
/// Least life of a session without a keep-alive.
pub const TTL_MS_MIN: u64 = 500;
/// Longest life of a session without a keep-alive.
pub const TTL_MS_MAX: u64 = 300_000;
/// Longest wait in line.
pub const WAIT_MS_MAX: u64 = 60_000;

/// Highest value that tokens may be raised to by hand. It leaves three quarters of what a `u64` can count, and
/// above all what a database's signed 64 bits can.
pub const TOKEN_FLOOR_MAX: u64 = 1 << 62;

/// Acquisitions that the state remembers for one session: waiting, granted, and finished ones whose
/// answer the client has not acknowledged.
pub const ACQUISITIONS_PER_SESSION_MAX: usize = 1_024;
/// Waiters in line for one name, its holder not counted.
pub const WAITERS_PER_NAME_MAX: usize = 4_096;
/// Open sessions.
pub const SESSIONS_MAX: usize = 65_536;
/// Names that are held or waited for.
pub const NAMES_MAX: usize = 1_000_000;
/// Acquisitions that the state remembers over all sessions.
pub const ACQUISITIONS_MAX: usize = 1_000_000;

/// The limits that depend on what else is in the state; the others are enforced by the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// See [`ACQUISITIONS_PER_SESSION_MAX`].
    pub acquisitions_per_session: usize,
    /// See [`WAITERS_PER_NAME_MAX`].
    pub waiters_per_name: usize,
    /// See [`SESSIONS_MAX`].
    pub sessions: usize,
    /// See [`NAMES_MAX`].
    pub names: usize,
    /// See [`ACQUISITIONS_MAX`].
    pub acquisitions: usize,
}

impl Limits {
    /// What a real cluster runs with.
    pub const STANDARD: Self = Self {
        acquisitions_per_session: ACQUISITIONS_PER_SESSION_MAX,
        waiters_per_name: WAITERS_PER_NAME_MAX,
        sessions: SESSIONS_MAX,
        names: NAMES_MAX,
        acquisitions: ACQUISITIONS_MAX,
    };
}
