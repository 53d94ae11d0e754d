//! The lines in front of the names.
//!
//! A name that is held or waited for has a line; the holder stands at its front, and the others behind it
//! in the order in which the log brought them. There is no separate "holder" of a name: an acquisition
//! holds when it is the first in the lines of *all* its names. As every acquisition enters all its lines
//! in the same instant with the same arrival number, the lines agree on who was earlier, so there is
//! always one that is first everywhere: two carts with the same names in opposite order cannot deadlock.
//!
//! Lines are sorted maps and not queues, because most who leave do so from the middle: time-outs, hung-up
//! clients, dead sessions. 4,096 of them leaving one after the other must not look at each other.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use crate::id::{AcquireId, SessionId};
use crate::name::LockName;

/// The order in which acquisitions came: one number for each, over all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Arrival(u64);

impl Arrival {
    pub(super) const ZERO: Self = Self(0);

    pub(super) fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("2^64 acquisitions cannot have come"))
    }
}

/// Which acquisition of which session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub(super) session_id: SessionId,
    pub(super) acquire_id: AcquireId,
}

/// One line. Never empty; the first is kept apart so that a lock without waiters costs no allocation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    first: (Arrival, Claim),
    rest: BTreeMap<Arrival, Claim>,
}

impl Line {
    pub(super) fn first(&self) -> (Arrival, Claim) {
        self.first
    }

    /// How many stand behind the first.
    pub(super) fn behind_first(&self) -> usize {
        self.rest.len()
    }

    /// Everybody, the first one first.
    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        std::iter::once(self.first.1).chain(self.rest.values().copied())
    }
}

/// All lines. A name without one is free, and costs nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    by_name: BTreeMap<LockName, Line>,
}

impl Lines {
    pub(super) fn get(&self, name: &str) -> Option<&Line> {
        self.by_name.get(name)
    }

    /// The lines of all names from `name` on, in the order of their names.
    pub(super) fn from<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a LockName, &'a Line)> {
        use std::ops::Bound::{Included, Unbounded};
        self.by_name.range::<str, _>((Included(name), Unbounded))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&LockName, &Line)> {
        self.by_name.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether the acquisition that came as `arrival` is the first in this line.
    pub(super) fn is_first(&self, name: &LockName, arrival: Arrival) -> bool {
        self.by_name.get(name).is_some_and(|line| line.first.0 == arrival)
    }

    /// Takes its place in the line of `name`. Arrivals may enter in any order (a restore goes session by
    /// session); they stand in the order of their numbers.
    pub(super) fn enter(&mut self, name: &LockName, arrival: Arrival, claim: Claim) {
        match self.by_name.entry(name.clone()) {
            Entry::Vacant(free) => {
                free.insert(Line {
                    first: (arrival, claim),
                    rest: BTreeMap::new(),
                });
            }
            Entry::Occupied(taken) => {
                let line = taken.into_mut();
                let mut behind = (arrival, claim);
                if arrival < line.first.0 {
                    std::mem::swap(&mut line.first, &mut behind);
                }
                let doubled = line.rest.insert(behind.0, behind.1);
                assert!(
                    doubled.is_none(),
                    "two arrivals with one number in the line of {name}"
                );
            }
        }
    }

    /// Leaves the line of `name`; true if it was the first and others come up behind it.
    pub(super) fn leave(&mut self, name: &LockName, arrival: Arrival) -> bool {
        let line = self
            .by_name
            .get_mut(name)
            .expect("whoever leaves stands in a line");
        if line.first.0 != arrival {
            let left = line.rest.remove(&arrival);
            assert!(
                left.is_some(),
                "it leaves the line of {name} without standing in it"
            );
            return false;
        }
        match line.rest.pop_first() {
            Some(next) => {
                line.first = next;
                true
            }
            None => {
                self.by_name.remove(name);
                false
            }
        }
    }
}
