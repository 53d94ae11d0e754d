//! `process`: one mutex per name, in the memory of this instance. What many programs have, and right as long
//! as there is one instance; the second instance has mutexes of its own and never hears of these.
//!
//! The names are taken in their order, so that two carts over the same events cannot wait for each other. A
//! mutex exists as long as somebody holds it or waits for it: names come from requests, and a map that only
//! grew would be a leak.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::{Entering, Guard};
use crate::entry::Held;
use crate::{GuardError, WriteRule};

#[derive(Default)]
pub(crate) struct Process {
    keys: Arc<Keys>,
}

impl Guard for Process {
    fn enter<'a>(&'a self, names: &'a [String], wait: Duration) -> Entering<'a> {
        Box::pin(async move {
            let keys = timeout(wait, Keys::take(&self.keys, names))
                .await
                .map_err(|_| GuardError::WaitTimeout)?;
            Ok((WriteRule::Plain, Held::Keys { _keys: keys }))
        })
    }
}

/// The mutexes by name.
#[derive(Debug, Default)]
struct Keys(Mutex<HashMap<String, Arc<FairMutex<()>>>>);

impl Keys {
    async fn take(keys: &Arc<Self>, names: &[String]) -> KeysHeld {
        let mut held = KeysHeld(Vec::new());
        for name in names.iter().collect::<BTreeSet<_>>() {
            let seat = Seat::at(keys, name);
            let turn = seat.mutex.clone().lock_owned().await;
            held.0.push(KeyHeld {
                _turn: turn,
                _seat: seat,
            });
        }
        held
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<FairMutex<()>>>> {
        // Nothing under this lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All mutexes of one section; dropping it frees them.
#[derive(Debug)]
pub(crate) struct KeysHeld(Vec<KeyHeld>);

/// One mutex that is held. The fields are dropped in this order: first the turn, then the seat.
#[derive(Debug)]
struct KeyHeld {
    _turn: OwnedMutexGuard<()>,
    _seat: Seat,
}

/// Somebody who holds a mutex or waits for it, and clears it away when nobody else does.
#[derive(Debug)]
struct Seat {
    keys: Arc<Keys>,
    name: String,
    mutex: Arc<FairMutex<()>>,
}

impl Seat {
    fn at(keys: &Arc<Keys>, name: &str) -> Self {
        let mutex = keys.lock().entry(name.to_owned()).or_default().clone();
        Self {
            keys: keys.clone(),
            name: name.to_owned(),
            mutex,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut keys = self.keys.lock();
        // Let go of under the map's lock: of two that leave at the same moment, each would still count the other.
        drop(std::mem::take(&mut self.mutex));
        // Only the map's own is left. A newcomer needs the map's lock to become the second.
        if keys
            .get(&self.name)
            .is_some_and(|mutex| Arc::strong_count(mutex) == 1)
        {
            keys.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);
    const SHORT: Duration = Duration::from_millis(20);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[tokio::test]
    async fn the_second_waits_until_the_first_has_left() {
        let process = Process::default();
        let a = names(&["a"]);
        let first = process.enter(&a, WAIT).await.expect("free");
        assert_eq!(
            process.enter(&a, SHORT).await.map(|_| ()),
            Err(GuardError::WaitTimeout)
        );
        drop(first);
        assert!(process.enter(&a, WAIT).await.is_ok());
    }

    #[tokio::test]
    async fn carts_over_the_same_names_in_another_order_do_not_block_each_other() {
        let process = Arc::new(Process::default());
        let both: Vec<_> = [["a", "b"], ["b", "a"]]
            .map(|order| {
                let process = process.clone();
                tokio::spawn(async move {
                    for _ in 0..200 {
                        let entry = process.enter(&names(&order), WAIT).await.expect("no deadlock");
                        tokio::task::yield_now().await;
                        drop(entry);
                    }
                })
            })
            .into_iter()
            .collect();
        for task in both {
            task.await.expect("both finish");
        }
    }

    #[tokio::test]
    async fn no_mutex_outlives_its_holders_and_waiters() {
        let process = Process::default();
        let (ab, b) = (names(&["a", "b", "a"]), names(&["b"]));
        let held = process.enter(&ab, WAIT).await.expect("free");
        assert!(process.enter(&b, SHORT).await.is_err());
        assert_eq!(process.keys.lock().len(), 2);
        drop(held);
        assert_eq!(process.keys.lock().len(), 0);
    }

    #[test]
    fn two_that_leave_at_the_same_moment_leave_no_mutex_behind() {
        let keys = Arc::new(Keys::default());
        let together = Arc::new(std::sync::Barrier::new(2));
        for _ in 0..2_000 {
            let leaving = [(); 2].map(|()| {
                let (seat, together) = (Seat::at(&keys, "a"), together.clone());
                std::thread::spawn(move || {
                    together.wait();
                    drop(seat);
                })
            });
            for thread in leaving {
                thread.join().expect("it leaves");
            }
            assert_eq!(keys.lock().len(), 0);
        }
    }
}
