//! Into the lines' front, and out of the lines: the two moves that everything else is made of.

use crate::event::Event;

use super::acquisition::{Acquisition, Leaving, Live, Outcome, Phase};
use super::line::Claim;
use super::{LockState, Turn};

impl LockState {
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
    pub(super) fn grant(&mut self, claim: Claim, turn: &mut Turn) {
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
}
