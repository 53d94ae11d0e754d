//! The numbers of one session's attempts: given out in order, finished in any order, acknowledged from below.
//!
//! The cluster remembers the answer of every id until it is acknowledged, and keeps at most 1,024 of them a
//! session. An acknowledgement is one number, "all up to here are finished": a lock that is held for long keeps
//! every later answer remembered. A session therefore gives out [`Ids::SPAN_MAX`] numbers past its oldest
//! unfinished one and then counts as full; the client goes on with a fresh session and lets this one run dry.

use std::collections::BTreeSet;

/// Which attempts of a session are under way, finished and acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The last number given out; 0 before the first.
    last: u64,
    /// All numbers up to this one are finished.
    finished_up_to: u64,
    /// Finished numbers above it.
    finished: BTreeSet<u64>,
    /// What the cluster has been told last.
    acknowledged: u64,
}

impl Ids {
    /// Numbers above the oldest unfinished one, well under the cluster's 1,024.
    const SPAN_MAX: u64 = 768;
    /// Finished but unacknowledged numbers that make an early keep-alive worth its round trip.
    const UNACKNOWLEDGED_MAX: u64 = 128;

    /// The next number, unless the session is full.
    pub(crate) fn begin(&mut self) -> Option<u64> {
        if self.last - self.acknowledged >= Self::SPAN_MAX {
            return None;
        }
        self.last += 1;
        Some(self.last)
    }

    /// Nothing of this attempt is left in the cluster, and nothing more will be asked under its number.
    /// Answers whether enough have piled up to tell the cluster now.
    pub(crate) fn finish(&mut self, id: u64) -> bool {
        debug_assert!(
            id <= self.last && id > 0,
            "only a number that was given out can finish"
        );
        if id > self.finished_up_to {
            self.finished.insert(id);
        }
        while self.finished.remove(&(self.finished_up_to + 1)) {
            self.finished_up_to += 1;
        }
        self.finished_up_to - self.acknowledged >= Self::UNACKNOWLEDGED_MAX
    }

    /// The highest number below which all are finished, to be sent with a keep-alive.
    pub(crate) fn to_acknowledge(&self) -> Option<u64> {
        (self.finished_up_to > 0).then_some(self.finished_up_to)
    }

    /// The cluster has taken an acknowledgement.
    pub(crate) fn acknowledged(&mut self, id: u64) {
        self.acknowledged = self.acknowledged.max(id);
    }

    /// Attempts under way: waiting, held, or being given back.
    pub(crate) fn under_way(&self) -> usize {
        let above = self.last - self.finished_up_to;
        usize::try_from(above).unwrap_or(usize::MAX) - self.finished.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_attempt_holds_the_acknowledgement_back() {
        let mut ids = Ids::default();
        let [first, second, third] = [(); 3].map(|()| ids.begin().unwrap());
        ids.finish(third);
        ids.finish(second);
        assert_eq!(ids.to_acknowledge(), None);
        assert_eq!(ids.under_way(), 1);
        ids.finish(first);
        assert_eq!(ids.to_acknowledge(), Some(third));
        assert_eq!(ids.under_way(), 0);
    }

    #[test]
    fn a_session_is_full_before_the_cluster_refuses() {
        let mut ids = Ids::default();
        let held = ids.begin().unwrap();
        while let Some(id) = ids.begin() {
            ids.finish(id);
        }
        assert_eq!(ids.last, Ids::SPAN_MAX);
        ids.finish(held);
        ids.acknowledged(ids.to_acknowledge().unwrap());
        assert!(ids.begin().is_some());
    }

    #[test]
    fn many_finished_attempts_ask_for_an_early_keep_alive() {
        let mut ids = Ids::default();
        let asked = (0..Ids::UNACKNOWLEDGED_MAX).filter(|_| {
            let id = ids.begin().unwrap();
            ids.finish(id)
        });
        assert_eq!(asked.count(), 1);
    }
}
