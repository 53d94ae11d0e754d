//! Futures that are dropped half-way.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Polls `future` at most `polls` times, as its wakers ask for it, and then drops it: `None` if that was not enough.
///
/// A future stands at one of its await points between two polls. So a test that does this for 0, 1, 2, … polls, until
/// the future completes, has cancelled it at every one of them.
pub async fn cut_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_future_is_cut_at_each_of_its_await_points() {
        let three_polls = async || {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        };
        for polls in 0..3 {
            assert_eq!(cut_after(polls, three_polls()).await, None);
        }
        assert_eq!(cut_after(3, three_polls()).await, Some(()));
    }
}
