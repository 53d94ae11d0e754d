//! Looking without changing anything.

use crate::id::{AcquireId, SessionId};
use crate::name::{LockName, LockNames};
use crate::reply::AcquireAnswer;
use crate::view::{Counts, HolderView, LockView, SessionView, WaiterView};

use super::LockState;
use super::acquisition::{Acquisition, Phase};
use super::line::Line;

impl LockState {
    /// One lock; `None` if nobody holds it or waits for it.
    pub fn lock(&self, name: &str) -> Option<LockView> {
        self.lock_in_brief(name, usize::MAX)
    }

    /// The same with at most `waiters_max` of those who wait: a line can be 4,096 long.
    pub fn lock_in_brief(&self, name: &str, waiters_max: usize) -> Option<LockView> {
        let (found, line) = self.index.lines.from(name).next()?;
        (found.as_str() == name).then(|| self.view(found, line, waiters_max))
    }

    /// The first `limit` locks whose names start with `prefix`, in the order of their names.
    pub fn locks(&self, prefix: &str, limit: usize) -> Vec<LockView> {
        self.locks_in_brief(prefix, limit, usize::MAX)
    }

    /// The same with at most `waiters_max` of those who wait for each: a limit on names alone bounds neither the
    /// answer nor the time for which the state is looked at.
    pub fn locks_in_brief(&self, prefix: &str, limit: usize, waiters_max: usize) -> Vec<LockView> {
        self.index
            .lines
            .from(prefix)
            .take_while(|(name, _)| name.as_str().starts_with(prefix))
            .take(limit)
            .map(|(name, line)| self.view(name, line, waiters_max))
            .collect()
    }

    /// One session; `None` if it is over or never was.
    pub fn session(&self, session_id: SessionId) -> Option<SessionView> {
        let session = self.sessions.get(&session_id)?;
        Some(SessionView {
            session_id,
            label: session.label.clone(),
            ttl: session.ttl,
            expires_at: session.expires_at,
            acknowledged: session.acknowledged,
            acquisitions: session.acquisitions.len(),
        })
    }

    /// How an attempt stands; `None` if nothing is known of it, or any more.
    pub fn acquisition(&self, session_id: SessionId, acquire_id: AcquireId) -> Option<AcquireAnswer> {
        Some(
            self.sessions
                .get(&session_id)?
                .acquisitions
                .get(&acquire_id)?
                .answer(),
        )
    }

    /// Whether this attempt, not known yet, would have to stand in line if it were asked for now.
    pub fn would_wait(&self, session_id: SessionId, acquire_id: AcquireId, names: &LockNames) -> bool {
        self.acquisition(session_id, acquire_id).is_none()
            && names
                .iter()
                .any(|name| self.index.lines.get(name.as_str()).is_some())
    }

    /// How much there is.
    pub fn counts(&self) -> Counts {
        Counts {
            sessions: self.sessions.len(),
            locks: self.index.lines.len(),
            holders: self.index.holders,
            waiters: self.index.wait_ends.len(),
            acquisitions: self.index.acquisitions,
        }
    }

    fn view(&self, name: &LockName, line: &Line, waiters_max: usize) -> LockView {
        let mut view = LockView {
            name: name.clone(),
            holder: None,
            waiters: Vec::new(),
            waiters_total: line.behind_first() + 1,
        };
        // Whoever holds stands in front.
        for claim in line.claims().take(waiters_max.saturating_add(1)) {
            let session = &self.sessions[&claim.session_id];
            let Acquisition::Live(live) = &session.acquisitions[&claim.acquire_id] else {
                unreachable!("only live acquisitions stand in lines");
            };
            let (session_id, acquire_id) = (claim.session_id, claim.acquire_id);
            let label = session.label.clone();
            match live.phase {
                Phase::Granted { fencing_token, at } => {
                    let held_ms = self.now.ms_since(at);
                    let holder = HolderView {
                        session_id,
                        label,
                        acquire_id,
                        fencing_token,
                        held_ms,
                    };
                    view.holder = Some(holder);
                    view.waiters_total -= 1;
                }
                Phase::Waiting { .. } if view.waiters.len() == waiters_max => {}
                Phase::Waiting { until } => {
                    let waiter = WaiterView {
                        session_id,
                        label,
                        acquire_id,
                        waits_until: until,
                    };
                    view.waiters.push(waiter);
                }
            }
        }
        view
    }
}
