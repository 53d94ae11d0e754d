//! [`Attempts`]: how often, and at what distance, a lost compare-and-set is tried again.
//!
//! A thousand buyers who all read the same version make one winner and 999 who read again. If they all come
//! back at once, the next round looks the same. So each waits a random time below a bound that doubles with
//! every loss ("full jitter"): the more rivals there are, the longer the bound grows, until about one of them
//! arrives per write. Two limits end it, a number of tries and a deadline; whoever runs out of either is told
//! to come back later, which is honest, and is not told "sold out", which would not be.

use std::time::{Duration, Instant};

use rand::RngExt as _;

/// The tries of one request.
#[derive(Debug)]
pub struct Attempts {
    lost: u32,
    lost_max: u32,
    first_bound: Duration,
    last_bound: Duration,
    deadline: Instant,
}

impl Attempts {
    /// For a compare-and-set under contention: up to 64 tries, ending after `wait`.
    pub fn within(wait: Duration) -> Self {
        Self {
            lost: 0,
            lost_max: 64,
            first_bound: Duration::from_millis(4),
            last_bound: Duration::from_secs(1),
            deadline: Instant::now() + wait,
        }
    }

    /// For contention that should pass at once (a serialization failure, a lost connection): `tries` at most.
    pub fn few(tries: u32) -> Self {
        Self {
            lost: 0,
            lost_max: tries,
            first_bound: Duration::from_millis(20),
            last_bound: Duration::from_millis(500),
            deadline: Instant::now() + Duration::from_secs(10),
        }
    }

    /// Call after a lost try. Waits, and answers whether to try again; `false` means that this was the last.
    #[must_use = "`false` means to give up"]
    pub async fn again(&mut self) -> bool {
        self.lost += 1;
        if self.lost >= self.lost_max {
            return false;
        }
        let pause = rand::rng().random_range(Duration::ZERO..=self.bound());
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// How many tries were lost so far.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    fn bound(&self) -> Duration {
        let doublings = (self.lost - 1).min(20);
        self.first_bound
            .saturating_mul(1 << doublings)
            .min(self.last_bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tries_are_bounded_in_number() {
        let mut attempts = Attempts::few(4);
        let mut tries = 1;
        while attempts.again().await {
            tries += 1;
        }
        assert_eq!(tries, 4);
    }

    #[tokio::test]
    async fn no_try_begins_after_the_deadline() {
        let mut attempts = Attempts::within(Duration::ZERO);
        assert!(!attempts.again().await);
    }

    #[test]
    fn the_bound_doubles_up_to_its_end() {
        let mut attempts = Attempts::within(Duration::from_secs(30));
        let mut bounds = Vec::new();
        for lost in [1, 2, 3, 9, 64] {
            attempts.lost = lost;
            bounds.push(attempts.bound().as_millis());
        }
        assert_eq!(bounds, [4, 8, 16, 1000, 1000]);
    }
}
