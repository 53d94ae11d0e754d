//! Everything about the sessions that can be derived from them, kept up to date because deriving it each
//! time would cost a walk over all of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::SessionId;
use crate::time::ClusterTime;

use super::acquisition::{Acquisition, Phase};
use super::line::{Arrival, Claim, Lines};
use super::session::Session;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) lines: Lines,
    /// When each session ends unless it is kept alive.
    pub(super) session_ends: BTreeSet<(ClusterTime, SessionId)>,
    /// When each waiter may wait no longer.
    pub(super) wait_ends: BTreeMap<(ClusterTime, Arrival), Claim>,
    /// Acquisitions remembered over all sessions, live and finished.
    pub(super) acquisitions: usize,
    /// Those of them that hold.
    pub(super) holders: usize,
}

impl Index {
    /// The index that belongs to these sessions.
    pub(super) fn of(sessions: &BTreeMap<SessionId, Session>) -> Self {
        let mut index = Self::default();
        for (&session_id, session) in sessions {
            index.session_ends.insert((session.expires_at, session_id));
            index.acquisitions += session.acquisitions.len();
            for (&acquire_id, acquisition) in &session.acquisitions {
                let Acquisition::Live(live) = acquisition else {
                    continue;
                };
                let claim = Claim {
                    session_id,
                    acquire_id,
                };
                for name in &live.names {
                    index.lines.enter(name, live.arrival, claim);
                }
                match live.phase {
                    Phase::Waiting { until } => {
                        index.wait_ends.insert((until, live.arrival), claim);
                    }
                    Phase::Granted { .. } => index.holders += 1,
                }
            }
        }
        index
    }
}
