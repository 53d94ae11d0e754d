//! Cluster time, as a leader hands it out.
//!
//! Sessions live and die by one clock that all replicas agree on, and no machine's wall clock is it: those jump,
//! and differ. Instead the leader of a term stamps each batch with
//!
//! > the cluster time that was in force when its first entry of that term was applied
//! > + the time that has passed since, on its own monotonic clock
//!
//! and applying keeps the later of stamp and state. So time never goes back; between two leaders it stands still
//! for as long as the election took, which lengthens lives and shortens none; and a leader that was stopped and
//! resumed cannot expire anybody, because others have a higher term by then and refuse what it proposes.
//!
//! Until that first entry is applied a new leader does not know where its predecessor's time ended. What it
//! proposes meanwhile is stamped zero: "no time has passed".

use std::sync::{Mutex, PoisonError};

use lock_core::ClusterTime;

use crate::raft::ServiceRt;

/// The clock of one node. It runs on followers too, unused: nobody knows who leads next.
pub struct ClusterClock<R: ServiceRt> {
    reign: Mutex<Option<Reign<R>>>,
}

struct Reign<R: ServiceRt> {
    term: u64,
    base: ClusterTime,
    since: R::Instant,
}

impl<R: ServiceRt> Default for ClusterClock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: ServiceRt> ClusterClock<R> {
    /// Not set: nothing was applied yet.
    pub fn new() -> Self {
        Self {
            reign: Mutex::new(None),
        }
    }

    /// An entry of `term` was applied. The first one of a term sets the clock to the cluster time in force.
    pub(crate) fn applied(&self, term: u64, now: impl FnOnce() -> ClusterTime) {
        let mut reign = self.reign.lock().unwrap_or_else(PoisonError::into_inner);
        if reign.as_ref().is_none_or(|reign| reign.term < term) {
            *reign = Some(Reign {
                term,
                base: now(),
                since: R::now(),
            });
        }
    }

    /// What time it is, for the leader of `term`; `None` before an entry of that term was applied.
    pub(crate) fn now(&self, term: u64) -> Option<ClusterTime> {
        let reign = self.reign.lock().unwrap_or_else(PoisonError::into_inner);
        let reign = reign.as_ref().filter(|reign| reign.term == term)?;
        let passed = u64::try_from(R::since(reign.since).as_millis()).unwrap_or(u64::MAX);
        Some(reign.base.plus_ms(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::Tokio;

    fn at(ms: u64) -> ClusterTime {
        ClusterTime::from_ms(ms)
    }

    #[test]
    fn a_leader_goes_on_from_the_time_it_found() {
        let clock = ClusterClock::<Tokio>::new();
        assert_eq!(clock.now(1), None, "nothing applied yet");
        clock.applied(1, || at(5_000));
        let now = clock.now(1).unwrap();
        assert!((at(5_000)..at(65_000)).contains(&now), "{now}");
        assert_eq!(
            clock.now(2),
            None,
            "the next term's leader has not applied anything"
        );
    }

    #[test]
    fn only_the_first_entry_of_a_term_sets_the_clock() {
        let clock = ClusterClock::<Tokio>::new();
        clock.applied(3, || at(1_000_000));
        clock.applied(3, || at(9_000_000));
        clock.applied(2, || at(8_000_000));
        assert!(clock.now(3).unwrap() < at(2_000_000));
        assert_eq!(clock.now(2), None);
    }
}
