//! Acquisitions: asked for, given up, released, broken.
//!
//! An acquisition is *live* while it stands in the lines of its names, waiting or holding; then it is
//! *finished*, and nothing is left of it but its answer, kept so that a client whose reply was lost can
//! ask again. That memory is the difference between "granted at most once" and "granted again after a
//! time-out": in Raft a proposal that timed out is neither done nor undone, and the only way to find out
//! is to ask again under the same id.

use serde::{Deserialize, Serialize};

use crate::event::{Event, ReleaseReason, WaitEnd};
use crate::id::{Delivery, FencingToken};
use crate::name::{LockName, LockNames};
use crate::reply::{AcquireAnswer, Refusal, Reply};
use crate::time::{ClusterTime, WaitMs};

use super::line::{Arrival, Claim};
use super::session::Session;
use super::{LockState, Turn};

/// What is remembered of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Acquisition {
    /// It stands in the lines of all its names.
    Live(Live),
    /// It does not, any more.
    Finished {
        /// To tell a retry from another attempt under the same id.
        names: LockNames,
        outcome: Outcome,
    },
    /// A release or an abandon came first, and the acquire itself may be anywhere between the client and
    /// us. Its id is used up: should it still arrive, it must not be granted to a client that has moved on.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Live {
    pub(super) names: LockNames,
    pub(super) arrival: Arrival,
    /// The latest, which alone may be abandoned.
    pub(super) delivery: Delivery,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Not the first in all its lines. Its wait is over when time has gone *past* `until`.
    Waiting { until: ClusterTime },
    /// The first in all its lines.
    Granted {
        fencing_token: FencingToken,
        at: ClusterTime,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Held,
    TimedOut,
    Abandoned,
    Released,
    Broken,
}

/// Why somebody leaves the lines.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaving {
    Released,
    Abandoned,
    Broken,
    TimedOut,
    SessionClosed,
    SessionExpired,
}

impl Leaving {
    /// The word for it if it held.
    fn of_holder(self) -> ReleaseReason {
        match self {
            Self::Released => ReleaseReason::Released,
            Self::Abandoned => ReleaseReason::Abandoned,
            Self::Broken => ReleaseReason::Broken,
            Self::TimedOut => unreachable!("a holder does not wait"),
            Self::SessionClosed => ReleaseReason::SessionClosed,
            Self::SessionExpired => ReleaseReason::SessionExpired,
        }
    }

    /// The word for it if it waited.
    fn of_waiter(self) -> WaitEnd {
        match self {
            Self::Released => WaitEnd::Released,
            Self::Abandoned => WaitEnd::Abandoned,
            Self::Broken => unreachable!("a waiter has no token to be broken by"),
            Self::TimedOut => WaitEnd::TimedOut,
            Self::SessionClosed => WaitEnd::SessionClosed,
            Self::SessionExpired => WaitEnd::SessionExpired,
        }
    }
}

impl Acquisition {
    /// How it stands, for whoever asks.
    pub(super) fn answer(&self) -> AcquireAnswer {
        match self {
            Self::Live(live) => match live.phase {
                Phase::Waiting { .. } => AcquireAnswer::Queued,
                Phase::Granted { fencing_token, .. } => AcquireAnswer::Granted {
                    fencing_token,
                    names: live.names.clone(),
                },
            },
            Self::Finished { outcome, .. } => match outcome {
                Outcome::Held => AcquireAnswer::Held,
                Outcome::TimedOut => AcquireAnswer::TimedOut,
                Outcome::Abandoned => AcquireAnswer::Abandoned,
                Outcome::Released => AcquireAnswer::Released,
                Outcome::Broken => AcquireAnswer::Broken,
            },
            Self::Closed => AcquireAnswer::Released,
        }
    }

    /// Whether an acknowledgement may make us forget it. Not a live one, of course; and not a broken one,
    /// for its client may well believe that it still holds: it is reminded until it releases.
    pub(super) fn is_forgettable(&self) -> bool {
        !matches!(self, Self::Live(_)) && !self.is_broken()
    }

    pub(super) fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::Finished {
                outcome: Outcome::Broken,
                ..
            }
        )
    }

    pub(super) fn finished(self, outcome: Outcome) -> Self {
        match self {
            Self::Live(Live { names, .. }) | Self::Finished { names, .. } => {
                Self::Finished { names, outcome }
            }
            Self::Closed => Self::Closed,
        }
    }

    /// Whether an acquire for these names can be a retry of this one.
    fn is_for(&self, names: &LockNames) -> bool {
        match self {
            Self::Live(Live { names: mine, .. }) | Self::Finished { names: mine, .. } => mine.same_set(names),
            Self::Closed => true,
        }
    }
}

impl LockState {
    pub(super) fn acquire(
        &mut self,
        claim: Claim,
        names: LockNames,
        wait: WaitMs,
        delivery: Delivery,
        turn: &mut Turn,
    ) -> Result<Reply, Refusal> {
        let session = self
            .sessions
            .get_mut(&claim.session_id)
            .ok_or(Refusal::SessionExpired)?;
        if let Some(known) = session.acquisitions.get_mut(&claim.acquire_id) {
            if !known.is_for(&names) {
                return Err(Refusal::NamesDiffer);
            }
            if let Acquisition::Live(live) = known {
                live.delivery = delivery;
            }
            return Ok(Reply::Acquire(known.answer()));
        }
        self.check_new_id(claim)?;

        let free = names
            .iter()
            .all(|name| self.index.lines.get(name.as_str()).is_none());
        if !free && wait == WaitMs::ZERO {
            self.remember(
                claim,
                Acquisition::Finished {
                    names,
                    outcome: Outcome::Held,
                },
            );
            return Ok(Reply::Acquire(AcquireAnswer::Held));
        }
        self.check_room_in_lines(&names)?;

        self.last_arrival = self.last_arrival.next();
        let arrival = self.last_arrival;
        for name in &names {
            self.index.lines.enter(name, arrival, claim);
        }
        let until = self.now.plus_ms(wait.get());
        self.index.wait_ends.insert((until, arrival), claim);
        let phase = Phase::Waiting { until };
        self.remember(
            claim,
            Acquisition::Live(Live {
                names: names.clone(),
                arrival,
                delivery,
                phase,
            }),
        );
        if free {
            self.grant(claim, turn);
        } else {
            let Claim {
                session_id,
                acquire_id,
            } = claim;
            turn.events.push(Event::Queued {
                session_id,
                acquire_id,
                names,
            });
        }
        Ok(Reply::Acquire(self.known(claim).answer()))
    }

    pub(super) fn abandon(
        &mut self,
        claim: Claim,
        delivery: Delivery,
        turn: &mut Turn,
    ) -> Result<Reply, Refusal> {
        let session = self
            .sessions
            .get(&claim.session_id)
            .ok_or(Refusal::SessionExpired)?;
        match session.acquisitions.get(&claim.acquire_id) {
            Some(Acquisition::Live(live)) if live.delivery == delivery => {
                self.give_up(claim, Leaving::Abandoned, Outcome::Abandoned, turn);
                Ok(Reply::Acquire(AcquireAnswer::Abandoned))
            }
            // Either it is over anyway, or the client has come back by another delivery and may by now
            // have been told that it holds: then it is not ours to take away.
            Some(known) => Ok(Reply::Acquire(known.answer())),
            None if session.has_acknowledged(claim.acquire_id) => Err(Refusal::Acknowledged),
            None => Err(self.close_unseen(claim)),
        }
    }

    pub(super) fn release(&mut self, claim: Claim, turn: &mut Turn) -> Result<Reply, Refusal> {
        let session = self
            .sessions
            .get(&claim.session_id)
            .ok_or(Refusal::SessionExpired)?;
        match session.acquisitions.get(&claim.acquire_id) {
            Some(Acquisition::Live(_)) => {
                self.give_up(claim, Leaving::Released, Outcome::Released, turn);
                Ok(Reply::Released)
            }
            Some(Acquisition::Finished { outcome, .. }) => match outcome {
                Outcome::Released | Outcome::Abandoned => Ok(Reply::Released),
                Outcome::Broken => {
                    // Now the client knows, and we need not remind it any longer.
                    self.finish(claim, Outcome::Released);
                    Ok(Reply::Released)
                }
                Outcome::Held | Outcome::TimedOut => Err(Refusal::NotHeld),
            },
            Some(Acquisition::Closed) => Err(Refusal::NotHeld),
            // Forgotten, so it was finished, and can never be granted again: as released as can be.
            None if session.has_acknowledged(claim.acquire_id) => Ok(Reply::Released),
            None => Err(self.close_unseen(claim)),
        }
    }

    pub(super) fn break_lock(
        &mut self,
        name: &LockName,
        fencing_token: FencingToken,
        turn: &mut Turn,
    ) -> Result<Reply, Refusal> {
        let line = self.index.lines.get(name.as_str()).ok_or(Refusal::StaleToken)?;
        let (_, claim) = line.first();
        let Acquisition::Live(live) = self.known(claim) else {
            unreachable!("only live acquisitions stand in lines");
        };
        match live.phase {
            Phase::Granted {
                fencing_token: held, ..
            } if held == fencing_token => {}
            Phase::Granted { .. } | Phase::Waiting { .. } => return Err(Refusal::StaleToken),
        }
        let names = live.names.clone();
        self.give_up(claim, Leaving::Broken, Outcome::Broken, turn);
        let Claim {
            session_id,
            acquire_id,
        } = claim;
        Ok(Reply::Broken {
            session_id,
            acquire_id,
            names,
        })
    }

    /// Grants whatever comes up in the lines whose first has left, in the order of arrival. A grant
    /// changes no line, so nothing more can come up because of it.
    pub(super) fn grant_what_is_free(&mut self, turn: &mut Turn) {
        let lines = &self.index.lines;
        let freed = std::mem::take(&mut turn.freed);
        let mut next: Vec<_> = freed
            .iter()
            .filter_map(|name| lines.get(name.as_str()).map(|line| line.first()))
            .collect();
        next.sort_unstable();
        next.dedup(); // it came up in several of its lines at once
        for (arrival, claim) in next {
            let Acquisition::Live(live) = self.known(claim) else {
                unreachable!("only live acquisitions stand in lines");
            };
            if live
                .names
                .iter()
                .all(|name| self.index.lines.is_first(name, arrival))
            {
                self.grant(claim, turn);
            }
        }
    }

    /// Hands all its names to an acquisition that is the first in all its lines.
    fn grant(&mut self, claim: Claim, turn: &mut Turn) {
        let Claim {
            session_id,
            acquire_id,
        } = claim;
        let session = self
            .sessions
            .get_mut(&session_id)
            .expect("who waits has a session");
        let Some(Acquisition::Live(live)) = session.acquisitions.get_mut(&acquire_id) else {
            unreachable!("only live acquisitions stand in lines");
        };
        let Phase::Waiting { until } = live.phase else {
            unreachable!("{session_id}/{acquire_id} came up in a line, but held before");
        };
        self.last_token = self.last_token.next();
        let fencing_token = self.last_token;
        live.phase = Phase::Granted {
            fencing_token,
            at: self.now,
        };
        self.index.wait_ends.remove(&(until, live.arrival));
        self.index.holders += 1;
        let names = live.names.clone();
        turn.events.push(Event::Granted {
            session_id,
            acquire_id,
            fencing_token,
            names,
        });
    }

    /// Ends a live acquisition of a session that goes on.
    pub(super) fn give_up(&mut self, claim: Claim, leaving: Leaving, outcome: Outcome, turn: &mut Turn) {
        let Acquisition::Live(live) = self.known(claim) else {
            unreachable!("only a live acquisition can be given up");
        };
        let live = live.clone();
        self.leave_lines(claim, &live, leaving, turn);
        self.finish(claim, outcome);
    }

    /// Takes it out of the index, says so, and notes which names may have become free.
    pub(super) fn leave_lines(&mut self, claim: Claim, live: &Live, leaving: Leaving, turn: &mut Turn) {
        for name in &live.names {
            if self.index.lines.leave(name, live.arrival) {
                turn.freed.push(name.clone());
            }
        }
        let Claim {
            session_id,
            acquire_id,
        } = claim;
        let names = live.names.clone();
        turn.events.push(match live.phase {
            Phase::Granted { fencing_token, .. } => {
                self.index.holders -= 1;
                let reason = leaving.of_holder();
                Event::Released {
                    session_id,
                    acquire_id,
                    fencing_token,
                    names,
                    reason,
                }
            }
            Phase::Waiting { until } => {
                self.index.wait_ends.remove(&(until, live.arrival));
                Event::WaitEnded {
                    session_id,
                    acquire_id,
                    names,
                    reason: leaving.of_waiter(),
                }
            }
        });
    }

    /// Uses up an id that nothing is known of; see [`Acquisition::Closed`].
    fn close_unseen(&mut self, claim: Claim) -> Refusal {
        match self.check_new_id(claim) {
            Ok(()) => {
                self.remember(claim, Acquisition::Closed);
                Refusal::NotHeld
            }
            Err(full) => full,
        }
    }

    /// Whether there is room to remember one more attempt, and this one may be a new one.
    fn check_new_id(&self, claim: Claim) -> Result<(), Refusal> {
        let session = &self.sessions[&claim.session_id];
        if session.has_acknowledged(claim.acquire_id) {
            return Err(Refusal::Acknowledged);
        }
        if session.acquisitions.len() >= self.limits.acquisitions_per_session {
            return Err(Refusal::TooManyUnacknowledged);
        }
        if self.index.acquisitions >= self.limits.acquisitions {
            return Err(Refusal::TooManyAcquisitions);
        }
        Ok(())
    }

    fn check_room_in_lines(&self, names: &LockNames) -> Result<(), Refusal> {
        let mut new_lines = 0;
        for name in names {
            match self.index.lines.get(name.as_str()) {
                Some(line) if line.behind_first() >= self.limits.waiters_per_name => {
                    return Err(Refusal::TooManyWaiters);
                }
                Some(_) => {}
                None => new_lines += 1,
            }
        }
        if self.index.lines.len() + new_lines > self.limits.names {
            return Err(Refusal::TooManyNames);
        }
        Ok(())
    }

    fn remember(&mut self, claim: Claim, acquisition: Acquisition) {
        let session: &mut Session = self
            .sessions
            .get_mut(&claim.session_id)
            .expect("who asks has a session");
        let known = session.acquisitions.insert(claim.acquire_id, acquisition);
        assert!(known.is_none(), "an id that is known is not remembered twice");
        self.index.acquisitions += 1;
    }

    fn known(&self, claim: Claim) -> &Acquisition {
        &self.sessions[&claim.session_id].acquisitions[&claim.acquire_id]
    }
}
