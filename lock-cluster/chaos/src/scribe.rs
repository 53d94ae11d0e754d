//! Where clients write down what they see, in one order.
//!
//! What a client *believes* ends by itself, when the deadline of its session passes; on a busy machine the task that
//! would notice runs late. So belief is not noted when somebody notices, it is asked for: before anything is written
//! down, every grant that counts as held is asked whether it still is. By that time the next holder's grant, if there
//! is one, has been given; and until then the promise is that the one before it says "lost".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lock_client::Grant;
use lock_core::SessionId;
use lock_history::{Attempt, History, Moment, Verdict, What};

/// One history; clones write into the same.
#[derive(Clone, Debug)]
pub struct Scribe(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    begun: Instant,
    history: History,
    believed: BTreeMap<Attempt, Arc<Grant>>,
    dead: BTreeSet<SessionId>,
    /// What dead clients held. To drop it is to release it, which the dead do not.
    graves: Vec<Arc<Grant>>,
    broken: BTreeSet<u64>,
    complaints: Vec<String>,
}

impl Default for Scribe {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            begun: Instant::now(),
            history: History::new(),
            believed: BTreeMap::new(),
            dead: BTreeSet::new(),
            graves: Vec::new(),
            broken: BTreeSet::new(),
            complaints: Vec::new(),
        })))
    }
}

impl Scribe {
    /// It happened now.
    pub fn note(&self, what: What) {
        let mut inner = self.inner();
        inner.ask_all();
        if let What::Breaks(token) = what {
            inner.broken.insert(token);
        }
        inner.write(what);
    }

    /// A client was told that it holds. It believes so until it lets go, dies, or the grant says "lost".
    pub fn granted(&self, attempt: Attempt, grant: &Arc<Grant>) {
        let told = What::Told(attempt, Verdict::Granted(grant.fencing_token()));
        let mut inner = self.inner();
        inner.ask_all();
        if grant.is_lost() {
            // The answer came so late that nobody believes it.
            inner.lost(attempt, grant);
            return inner.write(told);
        }
        inner.write(told);
        if !inner.dead.contains(&attempt.session) {
            inner.believed.insert(attempt, grant.clone());
        }
    }

    /// Something happened that no client should ever see.
    pub fn complain(&self, what: String) {
        self.inner().complaints.push(what);
    }

    /// All that was complained about.
    pub fn complaints(&self) -> Vec<String> {
        self.inner().complaints.clone()
    }

    /// A client begins to give up.
    pub fn let_go(&self, attempt: Attempt) {
        let mut inner = self.inner();
        inner.ask_all();
        if inner.believed.remove(&attempt).is_some() {
            inner.write(What::LetGo(attempt));
        }
    }

    /// A client's process is killed: it believes in nothing any more, and says goodbye to nobody.
    pub fn died(&self, session: SessionId) {
        let mut inner = self.inner();
        inner.ask_all();
        inner.dead.insert(session);
        inner.write(What::Distrusted(session));
        let held = std::mem::take(&mut inner.believed);
        let (dead, alive) = held
            .into_iter()
            .partition(|(attempt, _)| attempt.session == session);
        inner.believed = alive;
        let dead: BTreeMap<Attempt, Arc<Grant>> = dead;
        inner.graves.extend(dead.into_values());
    }

    /// All that was written. What a look saw is left out if nobody was told that token: an acquire that the client
    /// library began anew, after its session had ended under it, may have held for a moment without anybody knowing.
    pub fn history(&self) -> History {
        let inner = self.inner();
        let told = |moment: &Moment| match moment.what {
            What::Told(_, Verdict::Granted(token)) => Some(token),
            _ => None,
        };
        let told: BTreeSet<u64> = inner.history.iter().filter_map(told).collect();
        let known = |moment: &&Moment| match moment.what {
            What::Saw(_, Some(token)) => told.contains(&token),
            _ => true,
        };
        inner.history.iter().filter(known).cloned().collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Asks everybody who believes to hold whether they still do.
    fn ask_all(&mut self) {
        let lost: Vec<Attempt> = self
            .believed
            .iter()
            .filter(|(_, grant)| grant.is_lost())
            .map(|(attempt, _)| *attempt)
            .collect();
        for attempt in lost {
            if let Some(grant) = self.believed.remove(&attempt) {
                self.lost(attempt, &grant);
            }
        }
    }

    fn lost(&mut self, attempt: Attempt, grant: &Grant) {
        // The dead are not asked, and nobody else closes a session while it holds: the cluster ended it.
        let broken = grant.is_broken() || self.broken.contains(&grant.fencing_token());
        if !broken && Instant::now() < grant.deadline() {
            self.write(What::Expired(attempt.session));
        }
        self.write(What::LetGo(attempt));
    }

    fn write(&mut self, what: What) {
        let whose = match &what {
            What::Asked(attempt, _) | What::Told(attempt, _) => Some(attempt),
            What::LetGo(attempt) | What::Released(attempt) => Some(attempt),
            _ => None,
        };
        if whose.is_some_and(|attempt| self.dead.contains(&attempt.session)) {
            // It was on its lips when the process died.
            return;
        }
        let at = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.history.push(Moment { at, what });
    }
}
