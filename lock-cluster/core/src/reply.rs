//! What the one who proposed a command is told. A refusal is a reply, too: it is as deterministic as a
//! grant, and computed alike on every node.

use serde::{Deserialize, Serialize};

use crate::id::{AcquireId, FencingToken, SessionId};
use crate::name::LockNames;
use crate::time::TtlMs;

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To `OpenSession`.
    SessionOpened {
        /// The time to live in force: that of the first open.
        ttl: TtlMs,
        /// False if the session was there already (and is kept alive now).
        created: bool,
    },
    /// To `KeepAlive`.
    KeptAlive {
        /// From now.
        ttl: TtlMs,
        /// Acquisitions that an administrator broke and that the client has not released yet: it holds
        /// nothing under these ids, and may not know. Told with every keep-alive until it releases them.
        broken: Vec<AcquireId>,
    },
    /// To `CloseSession`; also if there was no such session.
    SessionClosed,
    /// To `Acquire`; and to `Abandon`, where it says what became of the attempt.
    Acquire(AcquireAnswer),
    /// To `Release`; also if it was released before.
    Released,
    /// To `Break`.
    Broken {
        /// Who held it.
        session_id: SessionId,
        /// By which attempt.
        acquire_id: AcquireId,
        /// Everything they lost.
        names: LockNames,
    },
    /// To `Expire`.
    Expired {
        /// How many sessions ended.
        sessions: u64,
        /// How many waits of living sessions ended.
        waits: u64,
    },
    /// To `RaiseTokenFloor`.
    TokenFloor {
        /// All later tokens are higher than this.
        floor: FencingToken,
    },
    /// The command was not carried out, and left nothing behind.
    Refused(Refusal),
}

/// How an attempt stands. All but `Queued` are remembered and given again for the same id; `Queued` turns
/// into one of the others, which an [`Event`](crate::Event) then tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AcquireAnswer {
    /// It holds all its names.
    Granted {
        /// Higher than all tokens before.
        fencing_token: FencingToken,
        /// In the order in which they were asked for.
        names: LockNames,
    },
    /// It stands in line.
    Queued,
    /// It was not to wait, and somebody else holds one of the names or stands in line for it.
    Held,
    /// It waited as long as it may.
    TimedOut,
    /// A node gave it up on behalf of a client that was gone.
    Abandoned,
    /// The client released it, or it was released or abandoned before it came: it will not hold (again).
    Released,
    /// An administrator broke it: it will not hold again.
    Broken,
}

/// Why a command was not carried out. None of these is remembered: the same command may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// There is no such session: it never was, was closed, or died.
    #[error("the session is over, or never was")]
    SessionExpired,
    /// To a release: this session never got this acquisition. If the id was new it is used up now, so that
    /// an acquire that was overtaken on its way cannot be granted to a client that has gone on.
    #[error("this session does not hold such an acquisition")]
    NotHeld,
    /// The same acquire id was used for other names before: a client's mistake, not a retry.
    #[error("this acquire id was used for other names")]
    NamesDiffer,
    /// The client has said that it is done with this id.
    #[error("this acquire id was acknowledged, its answer is forgotten")]
    Acknowledged,
    /// The session has as many remembered acquisitions as it may: acknowledge or release some.
    #[error("the session has too many unacknowledged acquisitions")]
    TooManyUnacknowledged,
    /// The cluster remembers as many acquisitions as it may.
    #[error("the cluster has too many acquisitions")]
    TooManyAcquisitions,
    /// As many sessions are open as may be.
    #[error("the cluster has too many sessions")]
    TooManySessions,
    /// As many different names are locked as may be.
    #[error("the cluster has too many locked names")]
    TooManyNames,
    /// As many wait for one of the names as may.
    #[error("too many wait for this name")]
    TooManyWaiters,
    /// To a break: the name is not held under this token (any more).
    #[error("the name is not held under this fencing token")]
    StaleToken,
    /// To a floor that would leave too few tokens above it.
    #[error("tokens may be raised to 2^62 at most")]
    TokenFloorTooHigh,
}

impl Refusal {
    /// Whether a [limit](crate::limits) was met, so that the same command may succeed when others have left.
    pub fn is_limit(self) -> bool {
        match self {
            Self::TooManyUnacknowledged
            | Self::TooManyAcquisitions
            | Self::TooManySessions
            | Self::TooManyNames
            | Self::TooManyWaiters => true,
            Self::SessionExpired
            | Self::NotHeld
            | Self::NamesDiffer
            | Self::Acknowledged
            | Self::StaleToken
            | Self::TokenFloorTooHigh => false,
        }
    }
}
