//! Who does not answer, said when it begins and when it is over, and not with every try in between.
//!
//! A member that is down is tried ten times a second, on several links, for as long as it is down. The library logs each
//! try; a night of that fills a disk, so those lines are left out by default and this says the same in two.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A member that comes and goes all the time is told of once in so long.
const PAUSE: Duration = Duration::from_secs(60);

/// Of each member whether it answers, as far as the log knows. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Absences(Arc<Mutex<BTreeMap<u64, Absence>>>);

#[derive(Debug)]
struct Absence {
    told_at: Instant,
    /// It was said to be away, and not yet to be back.
    is_told: bool,
}

impl Absences {
    /// The member could not be reached; answers whether to say so.
    pub(super) fn is_news(&self, member: u64) -> bool {
        self.is_news_at(member, Instant::now())
    }

    /// The member answers; returns whether it was said to be away.
    pub(super) fn is_over(&self, member: u64) -> bool {
        let mut absences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let absence = absences.get_mut(&member);
        absence.is_some_and(|absence| std::mem::take(&mut absence.is_told))
    }

    fn is_news_at(&self, member: u64, now: Instant) -> bool {
        let mut absences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = absences.get(&member).is_none_or(|absence| {
            !absence.is_told && now.saturating_duration_since(absence.told_at) >= PAUSE
        });
        if is_news {
            let absence = Absence {
                told_at: now,
                is_told: true,
            };
            absences.insert(member, absence);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_is_told_at_its_beginning_and_at_its_end() {
        let (absences, start) = (Absences::default(), Instant::now());
        assert!(!absences.is_over(2), "nobody said that it was away");
        let told = (0..600).filter(|second| absences.is_news_at(2, start + Duration::from_secs(*second)));
        assert_eq!(told.collect::<Vec<_>>(), [0]);
        assert!(absences.is_news_at(3, start), "another member");
        assert!(absences.is_over(2));
        assert!(!absences.is_over(2), "said once");
    }

    #[test]
    fn a_member_that_comes_and_goes_is_told_of_once_a_minute() {
        let (absences, start) = (Absences::default(), Instant::now());
        let told = (0..180_u64).filter(|second| {
            let told = absences.is_news_at(2, start + Duration::from_secs(*second));
            absences.is_over(2);
            told
        });
        assert_eq!(told.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
