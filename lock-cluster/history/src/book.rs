//! The cluster's own account, read by somebody who knows the rules and none of the code.
//!
//! The state machine tells events; from them alone this keeps a naive book of who stands in which line, and says
//! where an event contradicts it: a grant to somebody who was not the first, a token that is not higher than all
//! before, an attempt that holds again after it was over, somebody forgotten in front of a free lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lock_core::{Event, LockName, LockNames, SessionId};

use super::Attempt;

/// The book so far.
#[derive(Default)]
pub struct Book {
    sessions: BTreeSet<SessionId>,
    /// For each name, who stands in line; the first may hold.
    lines: BTreeMap<LockName, VecDeque<Attempt>>,
    live: BTreeMap<Attempt, Entry>,
    over: BTreeSet<Attempt>,
    last_token: u64,
}

struct Entry {
    names: LockNames,
    token: Option<u64>,
}

impl Book {
    /// Takes in one event. An error says what is wrong with it.
    pub fn take(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::SessionOpened { session_id, .. } => match self.sessions.insert(*session_id) {
                true => Ok(()),
                false => Err(format!("session {session_id} was opened while it was open")),
            },
            Event::SessionClosed { session_id, .. } => self.closed(*session_id),
            Event::Queued {
                session_id,
                acquire_id,
                names,
            } => {
                let attempt = attempt(*session_id, *acquire_id);
                if self.is_free(names) {
                    return Err(format!(
                        "{attempt} stands in line for {names}, which nobody wants"
                    ));
                }
                self.enter(attempt, names, None)
            }
            Event::Granted {
                session_id,
                acquire_id,
                fencing_token,
                names,
            } => self.granted(attempt(*session_id, *acquire_id), fencing_token.get(), names),
            Event::Released {
                session_id,
                acquire_id,
                fencing_token,
                ..
            } => self.left(attempt(*session_id, *acquire_id), Some(fencing_token.get())),
            Event::WaitEnded {
                session_id,
                acquire_id,
                ..
            } => self.left(attempt(*session_id, *acquire_id), None),
        }
    }

    /// At the end of an entry: nobody may stand first in all its lines and not hold.
    pub fn close_entry(&self) -> Result<(), String> {
        let waiting = self.live.iter().filter(|(_, entry)| entry.token.is_none());
        for (attempt, entry) in waiting {
            if self.is_first(*attempt, &entry.names) {
                return Err(format!(
                    "{attempt} is the first in line for {} and was forgotten",
                    entry.names
                ));
            }
        }
        Ok(())
    }

    fn granted(&mut self, attempt: Attempt, token: u64, names: &LockNames) -> Result<(), String> {
        if token <= self.last_token {
            return Err(format!("{attempt} got token {token} after {}", self.last_token));
        }
        self.last_token = token;
        if let Some(entry) = self.live.get_mut(&attempt) {
            if entry.token.replace(token).is_some() {
                return Err(format!("{attempt} was granted twice"));
            }
            return match self.is_first(attempt, names) {
                true => Ok(()),
                false => Err(format!("{attempt} was granted {names} before its turn")),
            };
        }
        match self.is_free(names) {
            true => self.enter(attempt, names, Some(token)),
            false => Err(format!("{attempt} was granted {names} past those in line")),
        }
    }

    fn enter(&mut self, attempt: Attempt, names: &LockNames, token: Option<u64>) -> Result<(), String> {
        if !self.sessions.contains(&attempt.session) {
            return Err(format!("{attempt} came in although its session is over"));
        }
        if self.over.contains(&attempt) || self.live.contains_key(&attempt) {
            return Err(format!("{attempt} came in again"));
        }
        for name in names {
            self.lines.entry(name.clone()).or_default().push_back(attempt);
        }
        let names = names.clone();
        self.live.insert(attempt, Entry { names, token });
        Ok(())
    }

    fn left(&mut self, attempt: Attempt, token: Option<u64>) -> Result<(), String> {
        let Some(entry) = self.live.remove(&attempt) else {
            return Err(format!("{attempt} left without having been there"));
        };
        self.over.insert(attempt);
        for name in &entry.names {
            let line = self.lines.entry(name.clone()).or_default();
            line.retain(|other| *other != attempt);
            if line.is_empty() {
                self.lines.remove(name);
            }
        }
        match entry.token == token {
            true => Ok(()),
            false => Err(format!(
                "{attempt} left holding {token:?} and had {:?}",
                entry.token
            )),
        }
    }

    fn closed(&mut self, session: SessionId) -> Result<(), String> {
        if !self.sessions.remove(&session) {
            return Err(format!("session {session} was closed and not open"));
        }
        // Should it be opened again, by a message that was late, it begins anew.
        self.over.retain(|attempt| attempt.session != session);
        match self.live.keys().find(|attempt| attempt.session == session) {
            None => Ok(()),
            Some(left) => Err(format!("{left} is still there, its session is not")),
        }
    }

    fn is_free(&self, names: &LockNames) -> bool {
        names.iter().all(|name| !self.lines.contains_key(name))
    }

    fn is_first(&self, attempt: Attempt, names: &LockNames) -> bool {
        let first = |name: &LockName| self.lines.get(name).and_then(VecDeque::front);
        names.iter().all(|name| first(name) == Some(&attempt))
    }
}

fn attempt(session: SessionId, id: lock_core::AcquireId) -> Attempt {
    Attempt { session, id }
}
