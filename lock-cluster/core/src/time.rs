//! Time is data here. The leader stamps every command; nothing in this crate reads a clock.
//!
//! Cluster time is in whole milliseconds, counts from no particular moment, and only grows: the state
//! takes the later of its own time and a command's stamp. A leader with a slow clock therefore cannot
//! turn time back; it merely makes it stand still until it has caught up, which lengthens lives and
//! shortens none.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::{TTL_MS_MAX, TTL_MS_MIN, WAIT_MS_MAX};

/// A moment in cluster time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterTime(u64);

impl ClusterTime {
    /// The time of a cluster to which nothing has happened yet.
    pub const ZERO: Self = Self(0);

    /// The moment so many milliseconds after zero.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since zero.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The moment `ms` later. At the end of time (a stamp of nonsense) it stays there: a deadline that
    /// is never reached is safe, one that wrapped around to the past is not.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this moment; 0 if it was not earlier.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A number of milliseconds outside what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {min} to {max}, not {got}")]
pub struct OutOfRange {
    /// The field: `ttl_ms` or `wait_ms`.
    pub what: &'static str,
    /// What was given.
    pub got: u64,
    /// The least allowed.
    pub min: u64,
    /// The most allowed.
    pub max: u64,
}

/// How long a session lives after its last keep-alive: 500 ms to 5 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct TtlMs(u64);

impl TtlMs {
    /// Checks the range.
    pub const fn new(ms: u64) -> Result<Self, OutOfRange> {
        if ms < TTL_MS_MIN || ms > TTL_MS_MAX {
            return Err(OutOfRange {
                what: "ttl_ms",
                got: ms,
                min: TTL_MS_MIN,
                max: TTL_MS_MAX,
            });
        }
        Ok(Self(ms))
    }

    /// Milliseconds.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for TtlMs {
    type Error = OutOfRange;

    fn try_from(ms: u64) -> Result<Self, OutOfRange> {
        Self::new(ms)
    }
}

impl From<TtlMs> for u64 {
    fn from(ttl: TtlMs) -> u64 {
        ttl.0
    }
}

/// How long an acquisition may wait in line: not at all (0) to one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct WaitMs(u64);

impl WaitMs {
    /// Now or never.
    pub const ZERO: Self = Self(0);

    /// Checks the range.
    pub const fn new(ms: u64) -> Result<Self, OutOfRange> {
        if ms > WAIT_MS_MAX {
            return Err(OutOfRange {
                what: "wait_ms",
                got: ms,
                min: 0,
                max: WAIT_MS_MAX,
            });
        }
        Ok(Self(ms))
    }

    /// Milliseconds.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for WaitMs {
    type Error = OutOfRange;

    fn try_from(ms: u64) -> Result<Self, OutOfRange> {
        Self::new(ms)
    }
}

impl From<WaitMs> for u64 {
    fn from(wait: WaitMs) -> u64 {
        wait.0
    }
}
