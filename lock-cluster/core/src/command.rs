//! What can be asked of the cluster. A command is proposed to Raft, and applied on every node in log order.

use serde::{Deserialize, Serialize};

use crate::id::{AcquireId, Delivery, FencingToken, SessionId};
use crate::name::{Label, LockName, LockNames};
use crate::time::{TtlMs, WaitMs};

/// One entry's worth of work for the state machine. Every one may be applied twice (a retry whose first
/// proposal was committed after all): the second answer is then that of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Starts a session, or keeps it alive when it is there: a client whose first answer was lost counts
    /// its deadline from the repeat. The time to live and the label of the first one stay.
    OpenSession {
        /// Chosen by the client.
        session_id: SessionId,
        /// How long it lives after each keep-alive.
        ttl: TtlMs,
        /// For human eyes.
        label: Label,
    },
    /// Moves the session's end to its time to live from now.
    KeepAlive {
        /// Whose.
        session_id: SessionId,
        /// "I have no more questions about this and all lower ids": finished answers up to it are
        /// forgotten, and ids up to it that are not live are refused from then on. Never goes back.
        acknowledged: Option<AcquireId>,
    },
    /// Ends the session: releases what it holds, gives up its places in line.
    CloseSession {
        /// Whose.
        session_id: SessionId,
    },
    /// Asks for all of `names` together: granted now, or a place in line, or (wait 0) neither.
    Acquire {
        /// Who.
        session_id: SessionId,
        /// Which attempt of theirs. The same id again gets the same answer.
        acquire_id: AcquireId,
        /// What.
        names: LockNames,
        /// How long it may stand in line. A repeat does not lengthen it.
        wait: WaitMs,
        /// Which arrival at a node, so that only this one can be abandoned.
        delivery: Delivery,
    },
    /// A node gives the attempt up because the client that brought this delivery went away, or its wait
    /// is over: leaves the line, or releases what was granted but never handed over. Without effect as
    /// long as the same attempt has come by another delivery, too.
    Abandon {
        /// Whose.
        session_id: SessionId,
        /// Which attempt.
        acquire_id: AcquireId,
        /// Brought by which delivery.
        delivery: Delivery,
    },
    /// The client gives back what it holds, or gives up its place in line.
    Release {
        /// Who.
        session_id: SessionId,
        /// Which attempt of theirs.
        acquire_id: AcquireId,
    },
    /// An administrator takes the lock from its holder, if it is the one they mean.
    Break {
        /// Any of the acquisition's names; it loses them all, as they were granted together.
        name: LockName,
        /// The token under which it is held.
        fencing_token: FencingToken,
    },
    /// Time has passed, no more: applying it decides which sessions and waits are over. A keep-alive
    /// ordered before it wins.
    Expire,
    /// From now on tokens are higher than this: what a cluster is told that takes the place of another one,
    /// whose tokens the world has seen. A lower floor than the latest token changes nothing.
    RaiseTokenFloor {
        /// The highest token that may have been granted elsewhere.
        floor: FencingToken,
    },
}
