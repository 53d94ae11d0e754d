//! A bare commit waits for the next entries.
//!
//! Whenever an entry is committed, the library tells each follower so in a request that carries nothing else. On a busy
//! cluster the next entries follow within a millisecond and say it again, so these requests double what an entry costs
//! in messages, wake-ups and answers: a fifth of the processor time of a small one. Therefore a bare commit is held back
//! for a moment, left out if entries come in time that say the same and more, and sent if they do not.
//!
//! Nobody waits for it meanwhile. Clients are answered by the leader, which knows; a read asks a majority over the
//! heartbeats' own stream, which ends with its one request and is therefore not held back. Only what a follower shows
//! of its own, its events and its applied state, may be older by [`COMMIT_HELD`]. And should the leader be gone before
//! it said so, its successor commits the entry with its own first one, as after any lost message.
//!
//! Used by whatever carries a stream of appends: the real links and the simulation's.

use std::ops::Add;
use std::time::Duration;

use openraft::raft::AppendEntriesRequest;

use super::runtime::ServiceRt;
use super::types::Cfg;

/// How long a follower of a quiet leader may hear of a commit later than it could.
pub const COMMIT_HELD: Duration = Duration::from_millis(3);

/// What one stream of appends holds back. The time is the carrier's, of whatever kind `I` it is.
pub struct CommitHold<R: ServiceRt, I> {
    held: Option<Held<R, I>>,
}

struct Held<R: ServiceRt, I> {
    request: AppendEntriesRequest<Cfg<R>>,
    until: I,
}

impl<R: ServiceRt, I> Default for CommitHold<R, I> {
    fn default() -> Self {
        Self { held: None }
    }
}

impl<R: ServiceRt, I: Copy + Add<Duration, Output = I>> CommitHold<R, I> {
    /// Takes in the stream's next request. What is to be sent now comes back, in order; a bare commit stays here.
    pub fn pass(
        &mut self,
        now: I,
        request: AppendEntriesRequest<Cfg<R>>,
    ) -> impl Iterator<Item = AppendEntriesRequest<Cfg<R>>> + use<R, I> {
        let before = self.held.take();
        // A stream of nothing but commits is held up no longer for that.
        let until = before.as_ref().map_or(now + COMMIT_HELD, |held| held.until);
        let first = before
            .map(|held| held.request)
            .filter(|held| !says_it_too(&request, held));
        let second = if request.entries.is_empty() {
            self.held = Some(Held { request, until });
            None
        } else {
            Some(request)
        };
        first.into_iter().chain(second)
    }

    /// When what is held has to be sent; `None` if nothing is.
    pub fn due(&self) -> Option<I> {
        self.held.as_ref().map(|held| held.until)
    }

    /// What is held: its time is over, or nothing more will come that could say it too.
    pub fn release(&mut self) -> Option<AppendEntriesRequest<Cfg<R>>> {
        self.held.take().map(|held| held.request)
    }
}

/// Whether a follower that gets `later` need not get `earlier`, which came right before it.
fn says_it_too<R: ServiceRt>(
    later: &AppendEntriesRequest<Cfg<R>>,
    earlier: &AppendEntriesRequest<Cfg<R>>,
) -> bool {
    later.vote == earlier.vote
        && later.prev_log_id == earlier.prev_log_id
        && later.leader_commit >= earlier.leader_commit
}

#[cfg(test)]
mod tests {
    use openraft::impls::{Entry, EntryPayload};

    use super::*;
    use crate::raft::Tokio;
    use crate::raft::types::{CommittedLeaderId, Position, Vote};

    type Request = AppendEntriesRequest<Cfg<Tokio>>;

    fn at(index: u64) -> Position {
        Position {
            leader_id: CommittedLeaderId::new(1),
            index,
        }
    }

    /// Says behind entry `last` of the stream that all up to `committed` is committed.
    fn bare(last: u64, committed: u64) -> Request {
        AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: Some(at(last)),
            entries: Vec::new(),
            leader_commit: Some(at(committed)),
        }
    }

    /// The same with the next entry.
    fn with_entry(last: u64, committed: u64) -> Request {
        let entry = Entry {
            log_id: at(last + 1),
            payload: EntryPayload::Blank,
        };
        Request {
            entries: vec![entry],
            ..bare(last, committed)
        }
    }

    /// Time is whatever the carrier counts it in.
    fn hold() -> CommitHold<Tokio, Duration> {
        CommitHold::default()
    }

    /// Requests cannot be compared; what they show of themselves is all that matters here.
    fn said(requests: impl IntoIterator<Item = Request>) -> Vec<String> {
        requests.into_iter().map(|request| request.to_string()).collect()
    }

    fn passed(hold: &mut CommitHold<Tokio, Duration>, request: Request) -> Vec<String> {
        said(hold.pass(Duration::ZERO, request))
    }

    #[test]
    fn a_commit_rides_with_the_entries_that_follow() {
        let mut hold = hold();
        assert!(passed(&mut hold, bare(7, 6)).is_empty());
        assert!(passed(&mut hold, bare(7, 7)).is_empty());
        assert_eq!(passed(&mut hold, with_entry(7, 7)), said([with_entry(7, 7)]));
        assert!(hold.due().is_none() && hold.release().is_none());
    }

    #[test]
    fn what_does_not_say_it_too_follows_it() {
        let next_reign = Request {
            vote: Vote::new_committed(2, 2),
            ..with_entry(7, 7)
        };
        let behind_another_entry = with_entry(8, 7);
        let with_an_older_commit = with_entry(7, 6);
        for other in [next_reign, behind_another_entry, with_an_older_commit] {
            let mut hold = hold();
            assert!(passed(&mut hold, bare(7, 7)).is_empty());
            assert_eq!(passed(&mut hold, other.clone()), said([bare(7, 7), other]));
            assert!(hold.due().is_none() && hold.release().is_none());
        }
    }

    #[test]
    fn a_commit_waits_for_its_time_however_many_follow() {
        let mut hold = hold();
        assert!(passed(&mut hold, bare(7, 6)).is_empty());
        assert_eq!(hold.due(), Some(COMMIT_HELD));
        assert_eq!(hold.pass(COMMIT_HELD / 2, bare(7, 7)).count(), 0);
        assert_eq!(hold.due(), Some(COMMIT_HELD));
        assert_eq!(said(hold.release()), said([bare(7, 7)]));
        assert!(hold.due().is_none() && hold.release().is_none());
    }
}
