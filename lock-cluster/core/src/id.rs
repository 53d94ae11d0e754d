//! Who asks, which attempt, and which grant.
//!
//! All ids that a client retries with are chosen by the client. That is what makes a retry recognisable:
//! a command sent twice, over two nodes, before and after an election, carries the same ids both times,
//! and the replicated state answers the second one from memory instead of doing the work again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A client's liveness: one per process, chosen by the client when it opens the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(Uuid);

impl SessionId {
    /// Wraps the UUID that the client chose.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// The UUID inside.
    pub const fn get(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// One attempt of a session to get one or more names. The client increases it with each attempt;
/// a retry of the same attempt repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AcquireId(u64);

impl AcquireId {
    /// Wraps the number that the client chose; every `u64` will do.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number inside.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for AcquireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One arrival of an acquire at a node, chosen by the *node* (a random number will do): the client's
/// retry over another connection is the same [`AcquireId`] in another delivery.
///
/// It exists for [`Command::Abandon`](crate::Command::Abandon) alone. A node whose client hung up gives
/// the attempt up on the client's behalf; but the client may have hung up only to ask again elsewhere,
/// and may have been told "granted" there. So an abandon speaks for the delivery it names, and the
/// attempt is given up when all by which it has come were abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Delivery(u64);

impl Delivery {
    /// Wraps the number that the node drew.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number inside.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a grant is known by to the outside world. Every grant in the cluster has a higher one than all
/// grants before it, whatever the name, so a resource that remembers the highest token it has seen can
/// turn away a holder that was paused for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Below every token ever granted: the counter before the first grant.
    pub const ZERO: Self = Self(0);

    /// Wraps a token that somebody sent back to us.
    pub const fn new(token: u64) -> Self {
        Self(token)
    }

    /// The number inside.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The token of the next grant. Overflow is 584,000 years away at a million grants a second, and
    /// would break the one promise that tokens make, so it stops the node.
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("2^64 grants cannot have happened"))
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
