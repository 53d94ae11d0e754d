//! Looking without changing anything.

use crate::id::{AcquireId, SessionId};
use crate::name::LockName;
use crate::reply::AcquireAnswer;
use crate::view::{Counts, HolderView, LockView, SessionView, WaiterView};

use super::LockState;
use super::acquisition::{Acquisition, Phase};
use super::line::Line;

impl LockState {
    /// One lock; `None` if nobody holds it or waits for it.
    pub fn lock(&self, name: &str) -> Option<LockView> {
        let (found, line) = self.index.lines.from(name).next()?;
        (found.as_str() == name).then(|| self.view(found, line))
    }

    /// The first `limit` locks whose names start with `prefix`, in the order of their names.
    pub fn locks(&self, prefix: &str, limit: usize) -> Vec<LockView> {
        self.index
            .lines
            .from(prefix)
            .take_while(|(name, _)| name.as_str().starts_with(prefix))
            .take(limit)
            .map(|(name, line)| self.view(name, line))
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

    fn view(&self, name: &LockName, line: &Line) -> LockView {
        let mut view = LockView {
            name: name.clone(),
            holder: None,
            waiters: Vec::new(),
        };
        for claim in line.claims() {
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
                }
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
