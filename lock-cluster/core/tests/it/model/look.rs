//! What the naive model can be asked; the real one must say the same.

use lock_core::*;

use super::{Attempt, Fate, Model};

impl Model {
    pub(crate) fn acquisition(&self, session_id: SessionId, acquire_id: AcquireId) -> Option<AcquireAnswer> {
        let mut its = self.attempts.iter();
        its.find(|a| a.session_id == session_id && a.acquire_id == acquire_id)
            .map(Attempt::answer)
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let mut moment = self.now;
        // The last time anybody can be late is a session of five minutes; what is not late then never is.
        let horizon = self.now + limits::TTL_MS_MAX + 1;
        let late =
            |at: u64| self.sessions.iter().any(|s| s.late(at)) || self.attempts.iter().any(|a| a.late(at));
        if !late(horizon) {
            return None;
        }
        if late(moment) {
            // Overdue. When it fell due is the least over everybody.
            let sessions = self.sessions.iter().map(|s| s.last_seen + s.ttl.get());
            let waits = self
                .attempts
                .iter()
                .filter(|a| a.fate == Fate::Waits)
                .map(|a| a.asked_at + a.wait);
            return sessions.chain(waits).min().map(|end| end + 1);
        }
        // Bisection over "is anybody late at this moment", which only ever turns from no to yes.
        let mut yes = horizon;
        while yes - moment > 1 {
            let middle = moment + (yes - moment) / 2;
            if late(middle) {
                yes = middle;
            } else {
                moment = middle;
            }
        }
        Some(yes)
    }

    pub(crate) fn locks(&self) -> Vec<LockView> {
        self.names().into_iter().map(|name| self.view(name)).collect()
    }

    fn view(&self, name: LockName) -> LockView {
        let label = |id| self.sessions.iter().find(|s| s.id == id).unwrap().label.clone();
        let mut view = LockView {
            name: name.clone(),
            holder: None,
            waiters: vec![],
            waiters_total: 0,
        };
        for it in self.line(&name) {
            let (session_id, acquire_id, label) = (it.session_id, it.acquire_id, label(it.session_id));
            if let Fate::Holds { token, since } = it.fate {
                let fencing_token = FencingToken::new(token);
                let held_ms = self.now - since;
                view.holder = Some(HolderView {
                    session_id,
                    label,
                    acquire_id,
                    fencing_token,
                    held_ms,
                });
            } else {
                let waits_until = ClusterTime::from_ms(it.asked_at + it.wait);
                view.waiters_total += 1;
                view.waiters.push(WaiterView {
                    session_id,
                    label,
                    acquire_id,
                    waits_until,
                });
            }
        }
        view
    }

    pub(crate) fn counts(&self) -> Counts {
        let holders = self
            .attempts
            .iter()
            .filter(|a| matches!(a.fate, Fate::Holds { .. }))
            .count();
        Counts {
            sessions: self.sessions.len(),
            locks: self.names().len(),
            holders,
            waiters: self.attempts.iter().filter(|a| a.lives()).count() - holders,
            acquisitions: self.attempts.len(),
        }
    }
}
