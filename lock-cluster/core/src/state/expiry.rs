//! Time taking its toll.
//!
//! Only [`Command::Expire`](crate::Command::Expire) ends anything for being late. The leader proposes it
//! when [`LockState::next_deadline`] has come, but what it proposes names nobody: between the proposal and
//! its place in the log a keep-alive may have been ordered, and then the session lives. This is why an
//! expiry can never kill a session whose keep-alive the cluster has accepted.
//!
//! A deadline is the last moment that still counts: what has until 500 ends when it is 501. Stamps are
//! whole milliseconds, rounded down, so two stamps that are N apart may be almost a millisecond less than
//! N apart in truth; the extra one makes sure that nobody gets less time than promised.

use crate::event::SessionEnd;
use crate::reply::Reply;
use crate::time::ClusterTime;

use super::acquisition::{Leaving, Outcome};
use super::{LockState, Turn};

impl LockState {
    /// The first moment at which an `Expire` would end something, as things stand.
    pub fn next_deadline(&self) -> Option<ClusterTime> {
        let session = self.index.session_ends.first().map(|&(end, _)| end);
        let wait = self.index.wait_ends.first_key_value().map(|(&(end, _), _)| end);
        session.into_iter().chain(wait).min().map(|end| end.plus_ms(1))
    }

    /// Everybody whose time is up leaves before anybody is granted anything (the caller grants): a waiter
    /// that is too late does not get a lock because the holder died in the same instant.
    pub(super) fn expire(&mut self, turn: &mut Turn) -> Reply {
        let (mut sessions, mut waits) = (0, 0);
        while let Some(&(end, session_id)) = self.index.session_ends.first()
            && end < self.now
        {
            self.end_session(session_id, SessionEnd::Expired, turn);
            sessions += 1;
        }
        while let Some((&(end, _), &claim)) = self.index.wait_ends.first_key_value()
            && end < self.now
        {
            self.give_up(claim, Leaving::TimedOut, Outcome::TimedOut, turn);
            waits += 1;
        }
        Reply::Expired { sessions, waits }
    }
}
