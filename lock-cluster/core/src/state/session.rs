//! Sessions: opened, kept alive, closed.
//!
//! A session is the unit of death. A client that crashes cannot release what it holds, so everything it
//! has hangs on one short life that only its keep-alives prolong. Nothing else does: an acquire or a
//! release proves that the client was there, too, but its own idea of "still mine" runs from the
//! keep-alives it sent, and the two must not drift apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, SessionEnd};
use crate::id::{AcquireId, SessionId};
use crate::name::Label;
use crate::reply::{Refusal, Reply};
use crate::time::{ClusterTime, TtlMs};

use super::acquisition::{Acquisition, Leaving, Outcome};
use super::line::Claim;
use super::{LockState, Turn};

/// What the state knows of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) ttl: TtlMs,
    pub(super) label: Label,
    /// Its last moment: it dies when time has gone *past* this.
    pub(super) expires_at: ClusterTime,
    /// Ids up to this one are used up, though they may still be live.
    pub(super) acknowledged: Option<AcquireId>,
    /// All that is remembered, by attempt.
    pub(super) acquisitions: BTreeMap<AcquireId, Acquisition>,
}

impl Session {
    /// Whether the client has said that it is done with this id.
    pub(super) fn has_acknowledged(&self, acquire_id: AcquireId) -> bool {
        self.acknowledged.is_some_and(|last| acquire_id <= last)
    }
}

impl LockState {
    pub(super) fn open_session(
        &mut self,
        session_id: SessionId,
        ttl: TtlMs,
        label: Label,
        turn: &mut Turn,
    ) -> Result<Reply, Refusal> {
        if let Some(session) = self.sessions.get(&session_id) {
            let ttl = session.ttl;
            self.prolong(session_id);
            return Ok(Reply::SessionOpened { ttl, created: false });
        }
        if self.sessions.len() >= self.limits.sessions {
            return Err(Refusal::TooManySessions);
        }
        let expires_at = self.now.plus_ms(ttl.get());
        let session = Session {
            ttl,
            label: label.clone(),
            expires_at,
            acknowledged: None,
            acquisitions: BTreeMap::new(),
        };
        self.sessions.insert(session_id, session);
        self.index.session_ends.insert((expires_at, session_id));
        turn.events.push(Event::SessionOpened {
            session_id,
            ttl,
            label,
        });
        Ok(Reply::SessionOpened { ttl, created: true })
    }

    pub(super) fn keep_alive(
        &mut self,
        session_id: SessionId,
        acknowledged: Option<AcquireId>,
    ) -> Result<Reply, Refusal> {
        let session = self
            .sessions
            .get_mut(&session_id)
            .ok_or(Refusal::SessionExpired)?;
        let ttl = session.ttl;
        // Keep-alives can overtake each other on their way here; the highest acknowledgement stands.
        session.acknowledged = session.acknowledged.max(acknowledged);
        if let Some(last) = session.acknowledged {
            let known = session.acquisitions.len();
            let done = session
                .acquisitions
                .range(..=last)
                .filter(|(_, one)| one.is_forgettable());
            for id in done.map(|(&id, _)| id).collect::<Vec<_>>() {
                session.acquisitions.remove(&id);
            }
            self.index.acquisitions -= known - session.acquisitions.len();
        }
        let broken = session.acquisitions.iter().filter(|(_, one)| one.is_broken());
        let broken = broken.map(|(&id, _)| id).collect();
        self.prolong(session_id);
        Ok(Reply::KeptAlive { ttl, broken })
    }

    /// Closing what is not there is done: the client wanted it gone, and gone it is.
    pub(super) fn close_session(&mut self, session_id: SessionId, turn: &mut Turn) -> Reply {
        if self.sessions.contains_key(&session_id) {
            self.end_session(session_id, SessionEnd::Closed, turn);
        }
        Reply::SessionClosed
    }

    /// Takes the session out of the state, and everything it holds or waits for out of the lines.
    pub(super) fn end_session(&mut self, session_id: SessionId, end: SessionEnd, turn: &mut Turn) {
        let session = self
            .sessions
            .remove(&session_id)
            .expect("only a session that is there ends");
        self.index.session_ends.remove(&(session.expires_at, session_id));
        self.index.acquisitions -= session.acquisitions.len();
        let leaving = match end {
            SessionEnd::Closed => Leaving::SessionClosed,
            SessionEnd::Expired => Leaving::SessionExpired,
        };
        for (acquire_id, acquisition) in session.acquisitions {
            if let Acquisition::Live(live) = acquisition {
                self.leave_lines(
                    Claim {
                        session_id,
                        acquire_id,
                    },
                    &live,
                    leaving,
                    turn,
                );
            }
        }
        turn.events.push(Event::SessionClosed {
            session_id,
            reason: end,
        });
    }

    /// Moves the session's end to its time to live from now.
    fn prolong(&mut self, session_id: SessionId) {
        let session = self
            .sessions
            .get_mut(&session_id)
            .expect("only a living session is kept alive");
        self.index.session_ends.remove(&(session.expires_at, session_id));
        session.expires_at = self.now.plus_ms(session.ttl.get());
        self.index.session_ends.insert((session.expires_at, session_id));
    }

    /// Turns a live acquisition into a finished one, or into nothing if the client needs no answer.
    pub(super) fn finish(&mut self, claim: Claim, outcome: Outcome) {
        let session = self
            .sessions
            .get_mut(&claim.session_id)
            .expect("what finishes has a session");
        let one = session
            .acquisitions
            .remove(&claim.acquire_id)
            .expect("what finishes is known");
        let finished = one.finished(outcome);
        if session.has_acknowledged(claim.acquire_id) && finished.is_forgettable() {
            self.index.acquisitions -= 1;
        } else {
            session.acquisitions.insert(claim.acquire_id, finished);
        }
    }
}
