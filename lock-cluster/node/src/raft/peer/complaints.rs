//! How often one says the same.
//!
//! Whoever can reach the peer port can be refused ten thousand times a second. One line a second says as much.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(1);

/// When it was said last; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints(Arc<Mutex<Option<Instant>>>);

impl Complaints {
    /// Whether it is time to say it (again).
    pub(super) fn is_due(&self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if due {
            *last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_second_is_enough() {
        let (complaints, start) = (Complaints::default(), Instant::now());
        let due: Vec<u64> = (0..3_000)
            .filter(|ms| complaints.is_due_at(start + Duration::from_millis(*ms)))
            .collect();
        assert_eq!(due, [0, 1_000, 2_000]);
    }
}
