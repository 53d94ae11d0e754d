//! The replicated state and the rules by which a command changes it.
//!
//! What *is* (and what a snapshot carries) is small: the time, two counters, and the sessions with their
//! acquisitions. Everything else is an *index* over it, there to make the rules cheap:
//! the line in front of each name, and who has to go when. It can be rebuilt from the sessions at any
//! time, which is how a snapshot is restored and how the invariants are checked.
//!
//! Each apply takes one *turn*: first the command's own rule runs, and whoever it makes leave a line goes
//! into the turn; then, when all of them are gone, what became free is granted. Granting last is a
//! safety rule, not a convenience: if a session dies that holds one name and waits for it a second time,
//! or if fifty die at once, none of the dead may be handed a lock on the way out.

mod acquisition;
mod asking;
mod expiry;
mod granting;
mod index;
mod invariants;
mod line;
mod query;
mod session;
mod snapshot;

use std::collections::BTreeMap;

use crate::command::Command;
use crate::event::Event;
use crate::id::{FencingToken, SessionId};
use crate::limits::{Limits, TOKEN_FLOOR_MAX};
use crate::name::LockName;
use crate::reply::{Refusal, Reply};
use crate::time::ClusterTime;

use index::Index;
use line::{Arrival, Claim};
use session::Session;

pub use snapshot::{RestoreError, Snapshot};

/// The replicated state. Two of them that were fed the same commands in the same order are equal, on
/// whatever machine and at whatever hour.
#[derive(Debug)]
pub struct LockState {
    limits: Limits,
    now: ClusterTime,
    /// Never goes back and is never reset, whatever is forgotten: tokens are compared by resources that
    /// know nothing of our names and sessions.
    last_token: FencingToken,
    last_arrival: Arrival,
    sessions: BTreeMap<SessionId, Session>,
    index: Index,
    #[cfg(debug_assertions)]
    applied_since_check: usize,
}

/// What applying one command brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// For the one who proposed it.
    pub reply: Reply,
    /// For everybody, in the order in which it happened.
    pub events: Vec<Event>,
}

/// What one command has set in motion so far.
#[derive(Debug, Default)]
struct Turn {
    events: Vec<Event>,
    /// Names that lost the first in their line.
    freed: Vec<LockName>,
}

impl Default for LockState {
    fn default() -> Self {
        Self::new()
    }
}

impl LockState {
    /// The state of a cluster to which nothing has happened yet.
    pub fn new() -> Self {
        Self::with_limits(Limits::STANDARD)
    }

    /// The same with other limits, for tests. Every replica must be given the same ones.
    pub fn with_limits(limits: Limits) -> Self {
        Self::with_sessions(
            limits,
            ClusterTime::ZERO,
            FencingToken::ZERO,
            Arrival::ZERO,
            BTreeMap::new(),
        )
    }

    fn with_sessions(
        limits: Limits,
        now: ClusterTime,
        last_token: FencingToken,
        last_arrival: Arrival,
        sessions: BTreeMap<SessionId, Session>,
    ) -> Self {
        Self {
            limits,
            now,
            last_token,
            last_arrival,
            index: Index::of(&sessions),
            sessions,
            #[cfg(debug_assertions)]
            applied_since_check: 0,
        }
    }

    /// Applies one command, stamped by the leader that proposed it. A stamp from the past does not turn
    /// time back: the command then happens now.
    ///
    /// # Panics
    /// If the state is impossible. There is no answer to that but to stop this node: what it would grant
    /// next cannot be trusted.
    pub fn apply(&mut self, at: ClusterTime, command: Command) -> Applied {
        self.now = self.now.max(at);
        let mut turn = Turn::default();
        let outcome = match command {
            Command::OpenSession {
                session_id,
                ttl,
                label,
            } => self.open_session(session_id, ttl, label, &mut turn),
            Command::KeepAlive {
                session_id,
                acknowledged,
            } => self.keep_alive(session_id, acknowledged),
            Command::CloseSession { session_id } => Ok(self.close_session(session_id, &mut turn)),
            Command::Acquire {
                session_id,
                acquire_id,
                names,
                wait,
                delivery,
            } => {
                let claim = Claim {
                    session_id,
                    acquire_id,
                };
                self.acquire(claim, names, wait, delivery, &mut turn)
            }
            Command::Abandon {
                session_id,
                acquire_id,
                delivery,
            } => self.abandon(
                Claim {
                    session_id,
                    acquire_id,
                },
                delivery,
                &mut turn,
            ),
            Command::Release {
                session_id,
                acquire_id,
            } => self.release(
                Claim {
                    session_id,
                    acquire_id,
                },
                &mut turn,
            ),
            Command::Break { name, fencing_token } => self.break_lock(&name, fencing_token, &mut turn),
            Command::Expire => Ok(self.expire(&mut turn)),
            Command::RaiseTokenFloor { floor } => self.raise_token_floor(floor),
        };
        self.grant_what_is_free(&mut turn);
        #[cfg(debug_assertions)]
        self.check_when_due();
        let reply = outcome.unwrap_or_else(Reply::Refused);
        Applied {
            reply,
            events: turn.events,
        }
    }

    /// Raised, never lowered: whatever was granted here stays below whatever will be.
    fn raise_token_floor(&mut self, floor: FencingToken) -> Result<Reply, Refusal> {
        if floor.get() > TOKEN_FLOOR_MAX {
            return Err(Refusal::TokenFloorTooHigh);
        }
        self.last_token = self.last_token.max(floor);
        Ok(Reply::TokenFloor {
            floor: self.last_token,
        })
    }

    /// Cluster time: the latest stamp of all commands applied.
    pub fn now(&self) -> ClusterTime {
        self.now
    }

    /// The token of the latest grant; the next one will be higher.
    pub fn last_token(&self) -> FencingToken {
        self.last_token
    }

    /// A check costs as much as there is state. Run after every command it would make a debug build
    /// unusable with ten thousand sessions, so it takes as many commands to come due as it will cost:
    /// every time in a small state, and never more than a fixed share of the work in a big one.
    #[cfg(debug_assertions)]
    fn check_when_due(&mut self) {
        const CHEAP: usize = 64;
        self.applied_since_check += 1;
        let cost = self.sessions.len() + self.index.acquisitions;
        if self.applied_since_check * CHEAP > cost {
            self.applied_since_check = 0;
            self.check_invariants();
        }
    }
}
