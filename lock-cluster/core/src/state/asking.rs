//! The four things that can be asked about an acquisition: to have it, to have it no longer (by the node
//! that lost its client, by the client), and to take it from its holder.
//!
//! Each looks first whether it has been asked before. An acquire that is known gets its answer again, a
//! release of what is released is done; only what is new changes anything.

use crate::event::Event;
use crate::id::{Delivery, FencingToken};
use crate::name::{LockName, LockNames};
use crate::reply::{AcquireAnswer, Refusal, Reply};
use crate::time::WaitMs;

use super::acquisition::{Acquisition, Deliveries, Leaving, Live, Outcome, Phase};
use super::line::Claim;
use super::session::Session;
use super::{LockState, Turn};

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
                live.deliveries.add(delivery);
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
                deliveries: Deliveries::one(delivery),
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
            .get_mut(&claim.session_id)
            .ok_or(Refusal::SessionExpired)?;
        let known = session.acquisitions.get_mut(&claim.acquire_id);
        if let Some(Acquisition::Live(live)) = known
            && live.deliveries.abandon(delivery)
        {
            self.give_up(claim, Leaving::Abandoned, Outcome::Abandoned, turn);
            return Ok(Reply::Acquire(AcquireAnswer::Abandoned));
        }
        match session.acquisitions.get(&claim.acquire_id) {
            // Either it is over anyway, or the client has also come by another delivery and may have been told
            // by that one that it holds: then it is not ours to take away.
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

    pub(super) fn known(&self, claim: Claim) -> &Acquisition {
        &self.sessions[&claim.session_id].acquisitions[&claim.acquire_id]
    }
}
