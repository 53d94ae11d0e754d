//! Requests that have a connection to themselves for long: a wait for a lock, a stream of events.
//!
//! A port has so many seats, fewer where few files may be open, and a connection that is being served never loses its
//! own. Were all seats taken by those who wait, the next newcomer would be hung up on; and that may be the keep-alive of
//! one of their sessions. So an eighth of the seats is left for requests that are soon over. A pipe counts once, however
//! many acquires it has under way: its own keep-alives come the way its waits came, but it has the seat of another's.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use service_kit::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Streams of events at once. Each is told everything that happens.
const STREAMS_MAX: usize = 1_024;
/// When to come back.
const LATER: Duration = Duration::from_secs(1);

/// How many such requests there may still be. Clones share it.
#[derive(Clone)]
pub(crate) struct Lasting {
    all: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// One of them, until it is dropped.
#[must_use = "it counts for as long as it is held"]
pub(crate) struct Last {
    _of_all: OwnedSemaphorePermit,
    _of_streams: Option<OwnedSemaphorePermit>,
}

/// The share of a connection on which several may wait: taken by the first, given back by the last.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Weak<Last>>);

impl Shared {
    /// Room for one more acquire that may wait.
    pub(crate) fn wait(&self, lasting: &Lasting) -> Result<Arc<Last>, Problem> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = held.upgrade() {
            return Ok(last);
        }
        let last = Arc::new(lasting.wait()?);
        *held = Arc::downgrade(&last);
        Ok(last)
    }
}

impl Lasting {
    /// For a port with so many seats.
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(seats - seats / 8)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// Room for an acquire that may wait.
    pub(crate) fn wait(&self) -> Result<Last, Problem> {
        Ok(Last {
            _of_all: self.one()?,
            _of_streams: None,
        })
    }

    /// Room for a stream of events.
    pub(crate) fn stream(&self) -> Result<Last, Problem> {
        let full = |_| {
            Problem::busy("too-many-streams", LATER)
                .detail(format!("at most {STREAMS_MAX} streams are served"))
        };
        let of_streams = self.streams.clone().try_acquire_owned().map_err(full)?;
        Ok(Last {
            _of_all: self.one()?,
            _of_streams: Some(of_streams),
        })
    }

    fn one(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| {
            Problem::busy("overloaded", LATER).detail(
                "too many connections wait for locks or read events; nothing was done for this request",
            )
        };
        self.all.clone().try_acquire_owned().map_err(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(refused: Result<Last, Problem>) -> String {
        refused.err().expect("it is full").slug.clone().into_owned()
    }

    #[test]
    fn an_eighth_of_the_seats_is_left_for_what_is_soon_over() {
        let lasting = Lasting::new(64);
        let mut held: Vec<Last> = (0..55).map(|_| lasting.wait().unwrap()).collect();
        held.push(lasting.stream().unwrap());
        assert_eq!(slug(lasting.wait()), "overloaded");
        assert_eq!(slug(lasting.stream()), "overloaded");
        held.pop();
        assert!(lasting.wait().is_ok(), "given back");
    }

    #[test]
    fn a_connection_on_which_many_wait_counts_once_until_the_last_is_done() {
        let lasting = Lasting::new(2);
        let (pipe, other) = (Shared::default(), Shared::default());
        let mut waits: Vec<_> = (0..3).map(|_| pipe.wait(&lasting).unwrap()).collect();
        let _second = lasting.wait().unwrap();
        assert!(other.wait(&lasting).is_err(), "there is no share left");
        waits.truncate(1);
        assert!(other.wait(&lasting).is_err(), "one still waits");
        waits.clear();
        assert!(other.wait(&lasting).is_ok());
    }

    #[test]
    fn streams_have_a_bound_of_their_own() {
        let lasting = Lasting::new(10 * STREAMS_MAX);
        let held: Vec<Last> = (0..STREAMS_MAX).map(|_| lasting.stream().unwrap()).collect();
        assert_eq!(slug(lasting.stream()), "too-many-streams");
        assert!(lasting.wait().is_ok());
        drop(held);
        assert!(lasting.stream().is_ok());
    }
}
