//! How long bytes may wait to be written.
//!
//! A deadline for each write alone would be none: an end that takes a byte now and then would be waited for as long as it
//! likes. So the deadline is a *portion's*: all the bytes that wait when it begins. Whatever comes in meanwhile belongs to
//! the next portion, so that an end which reads steadily and is never quite done is not given up.

use std::time::Duration;

use tokio::time::Instant;

/// How long the other end may take to take what waits for it.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// The deadline of the oldest bytes that are not yet written.
#[derive(Debug)]
pub struct WriteDeadline {
    /// So many of the bytes that wait have to be written until then; none if no bytes wait.
    portion: usize,
    until: Instant,
}

impl Default for WriteDeadline {
    fn default() -> Self {
        Self {
            portion: 0,
            until: Instant::now(),
        }
    }
}

impl WriteDeadline {
    /// By when some of the `waiting` bytes have to be written. Without any it means nothing.
    pub fn until(&mut self, waiting: usize) -> Instant {
        if self.portion == 0 && waiting > 0 {
            self.portion = waiting;
            self.until = Instant::now() + WRITE_DEADLINE;
        }
        self.until
    }

    /// Takes in that so many bytes were written.
    pub fn wrote(&mut self, bytes: usize) {
        self.portion = self.portion.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_moves_no_deadline() {
        let mut deadline = WriteDeadline::default();
        let until = deadline.until(100);
        assert_eq!(until, Instant::now() + WRITE_DEADLINE);
        for written in 1..100 {
            advance(WRITE_DEADLINE / 100).await;
            deadline.wrote(1);
            // More has come, too.
            assert_eq!(deadline.until(1_000 - written), until);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_came_later_have_a_deadline_of_their_own() {
        let mut deadline = WriteDeadline::default();
        deadline.until(100);
        advance(WRITE_DEADLINE / 2).await;
        deadline.wrote(100);
        assert_eq!(deadline.until(50), Instant::now() + WRITE_DEADLINE);
        deadline.wrote(50);
        advance(2 * WRITE_DEADLINE).await;
        deadline.until(0);
        assert_eq!(deadline.until(1), Instant::now() + WRITE_DEADLINE);
    }
}
