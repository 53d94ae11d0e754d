//! What must be true after every command.
//!
//! The first two are what the whole machine is for: whoever holds is the first in all its lines (nobody
//! else can hold any of its names), and whoever is the first in all its lines holds (nobody is forgotten
//! in front of a free lock). The others guard the machinery below.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::SessionId;
use crate::limits::WAIT_MS_MAX;

use super::LockState;
use super::acquisition::{Acquisition, Live, Phase};
use super::index::Index;
use super::line::Arrival;
use super::session::Session;

impl LockState {
    /// Looks through the whole state. Debug builds do it by themselves as they apply.
    ///
    /// # Panics
    /// With a sentence about what is wrong.
    pub fn check_invariants(&self) {
        if let Some(violation) = self.violation() {
            panic!("the lock state is impossible: {violation}");
        }
    }

    /// The first thing found to be wrong.
    pub(super) fn violation(&self) -> Option<String> {
        self.check_lines()
            .and_then(|()| self.check_counters())
            .and_then(|()| self.check_memory())
            .and_then(|()| self.check_times())
            .and_then(|()| self.check_limits())
            .and_then(|()| self.check_index())
            .err()
    }

    fn live(&self) -> impl Iterator<Item = &Live> {
        live(&self.sessions)
    }

    /// To hold is to be the first everywhere, and the other way round.
    fn check_lines(&self) -> Result<(), String> {
        for Live {
            names,
            arrival,
            phase,
            ..
        } in self.live()
        {
            let first = names.iter().all(|name| self.index.lines.is_first(name, *arrival));
            match phase {
                Phase::Granted { .. } if !first => {
                    return Err(format!("{arrival:?} holds {names} without being first in line"));
                }
                Phase::Waiting { .. } if first => {
                    return Err(format!("{arrival:?} is first in line for {names}, but waits"));
                }
                Phase::Granted { .. } | Phase::Waiting { .. } => {}
            }
        }
        Ok(())
    }

    /// The counters are ahead of all that was numbered by them, and no grant shares its token.
    fn check_counters(&self) -> Result<(), String> {
        let mut tokens = BTreeSet::new();
        for Live {
            names,
            arrival,
            phase,
            ..
        } in self.live()
        {
            if *arrival > self.last_arrival {
                return Err(format!("{arrival:?} is ahead of the counter"));
            }
            if let Phase::Granted { fencing_token, .. } = phase {
                if *fencing_token > self.last_token {
                    return Err(format!(
                        "token {fencing_token} of {names} is ahead of the counter"
                    ));
                }
                if !tokens.insert(fencing_token) {
                    return Err(format!("token {fencing_token} of {names} was granted twice"));
                }
            }
        }
        Ok(())
    }

    /// What the client needs no answer for is forgotten.
    fn check_memory(&self) -> Result<(), String> {
        for (session_id, session) in &self.sessions {
            for (acquire_id, acquisition) in &session.acquisitions {
                if session.has_acknowledged(*acquire_id) && acquisition.is_forgettable() {
                    return Err(format!("{session_id}/{acquire_id} is remembered for nobody"));
                }
            }
        }
        Ok(())
    }

    /// Nothing lies further ahead than it can have been put, and nothing was granted in the future.
    fn check_times(&self) -> Result<(), String> {
        for (session_id, session) in &self.sessions {
            if session.expires_at > self.now.plus_ms(session.ttl.get()) {
                return Err(format!("{session_id} lives longer than its time to live"));
            }
        }
        for Live {
            names,
            arrival,
            phase,
            ..
        } in self.live()
        {
            match *phase {
                Phase::Granted { at, .. } if at > self.now => {
                    return Err(format!("{arrival:?} was granted {names} in the future"));
                }
                Phase::Waiting { until } if until > self.now.plus_ms(WAIT_MS_MAX) => {
                    return Err(format!("{arrival:?} waits for {names} longer than allowed"));
                }
                Phase::Granted { .. } | Phase::Waiting { .. } => {}
            }
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), String> {
        let limits = &self.limits;
        let crowded = |line: &super::line::Line| line.behind_first() > limits.waiters_per_name;
        if self.sessions.len() > limits.sessions {
            return Err(format!("{} sessions are open", self.sessions.len()));
        }
        if self.index.lines.len() > limits.names {
            return Err(format!("{} names are locked", self.index.lines.len()));
        }
        if let Some((name, line)) = self.index.lines.iter().find(|(_, line)| crowded(line)) {
            return Err(format!("{} wait for {name}", line.behind_first()));
        }
        let remembered = self.sessions.values().map(|session| session.acquisitions.len());
        if remembered.clone().any(|n| n > limits.acquisitions_per_session) {
            return Err("a session has too many acquisitions".into());
        }
        if remembered.sum::<usize>() > limits.acquisitions {
            return Err("there are too many acquisitions".into());
        }
        Ok(())
    }

    /// The index is what the sessions say: no line without a claim, no claim without a line, no empty
    /// line left behind, no deadline of somebody who is gone.
    fn check_index(&self) -> Result<(), String> {
        if self.index == Index::of(&self.sessions) {
            Ok(())
        } else {
            Err("the index does not belong to the sessions".into())
        }
    }
}

/// What must be true of the sessions before an index can be made of them at all.
pub(super) fn check_sources(sessions: &BTreeMap<SessionId, Session>) -> Result<(), String> {
    let mut arrivals: BTreeSet<Arrival> = BTreeSet::new();
    match live(sessions).find(|live| !arrivals.insert(live.arrival)) {
        Some(twice) => Err(format!("{:?} arrived twice", twice.arrival)),
        None => Ok(()),
    }
}

fn live(sessions: &BTreeMap<SessionId, Session>) -> impl Iterator<Item = &Live> {
    let acquisitions = sessions
        .values()
        .flat_map(|session| session.acquisitions.values());
    acquisitions.filter_map(|acquisition| match acquisition {
        Acquisition::Live(live) => Some(live),
        Acquisition::Finished { .. } | Acquisition::Closed => None,
    })
}
