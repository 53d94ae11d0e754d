//! Bounded, jittered pauses between two tries.
//!
//! A thousand waiters lose their leader in the same instant. Without jitter they come back in step and meet the
//! new leader as one wave; with half of each pause random they spread over it. The bound stays well under an
//! election, so that nobody sleeps through the new leader's first second; it deliberately undercuts the whole
//! seconds that `Retry-After` can say.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LAST: Duration = Duration::from_millis(160);

/// The pauses of one call, growing from try to try.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// How long to wait before the next try: between a half and the whole of a pause that doubles up to its bound.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LAST);
        pause.mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_are_jittered_and_stay_bounded() {
        let mut backoff = Backoff::new();
        let pauses: Vec<Duration> = (0..20).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= FIRST / 2 && pauses[0] <= FIRST);
        assert!(
            pauses[10..]
                .iter()
                .all(|pause| *pause >= LAST / 2 && *pause <= LAST)
        );
        assert!(pauses[10..].windows(2).any(|pair| pair[0] != pair[1]));
    }
}
