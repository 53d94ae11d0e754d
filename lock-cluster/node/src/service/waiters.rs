//! Who on this node waits for a grant, and is woken by whoever applies it.
//!
//! A waiter is registered **before** its acquire is proposed, or the grant could be applied in between and go by
//! unheard. It is found by what the client chose, `(session, acquire id)`, because that is what events carry; a
//! client that asks twice over two connections is two waiters under one key, and both are told.
//!
//! Every node applies every event. Only a node where somebody waits does anything about one, and it need not lead:
//! an ex-leader still hears, as a follower, what became of the acquisitions it took in.
//!
//! One event stream has a gap: installing a snapshot replaces the state without the events in between. All
//! waiters are looked up again then.

use std::collections::BTreeMap;

use lock_core::{AcquireAnswer, AcquireId, Delivery, Event, LockState, Refusal, SessionId, WaitEnd};
use tokio::sync::oneshot;

use super::Acquired;

type Attempt = (SessionId, AcquireId);

/// Answers ready to be sent, once the state's lock is released.
pub(super) type Wakeups = Vec<(oneshot::Sender<Acquired>, Acquired)>;

struct Waiter {
    delivery: Delivery,
    /// Its acquire was applied and stands in line: from now on the state must know it.
    queued: bool,
    wake: oneshot::Sender<Acquired>,
}

/// The waiters of one node. Ordered, so that a simulation wakes them in the same order every time.
#[derive(Default)]
pub(super) struct Waiters {
    by_attempt: BTreeMap<Attempt, Vec<Waiter>>,
    count: usize,
}

impl Waiters {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn register(&mut self, attempt: Attempt, delivery: Delivery) -> oneshot::Receiver<Acquired> {
        let (wake, woken) = oneshot::channel();
        self.by_attempt.entry(attempt).or_default().push(Waiter {
            delivery,
            queued: false,
            wake,
        });
        self.count += 1;
        woken
    }

    /// Takes one waiter out, if it was not woken before.
    pub(super) fn forget(&mut self, attempt: Attempt, delivery: Delivery) {
        let Some(waiters) = self.by_attempt.get_mut(&attempt) else {
            return;
        };
        let before = waiters.len();
        waiters.retain(|waiter| waiter.delivery != delivery);
        self.count -= before - waiters.len();
        if waiters.is_empty() {
            self.by_attempt.remove(&attempt);
        }
    }

    pub(super) fn mark_queued(&mut self, attempt: Attempt) {
        for waiter in self.by_attempt.get_mut(&attempt).into_iter().flatten() {
            waiter.queued = true;
        }
    }

    /// Finds the waiters that an event is news for.
    pub(super) fn hear(&mut self, event: &Event, wakeups: &mut Wakeups) {
        let (attempt, acquired) = match event {
            Event::Granted {
                session_id,
                acquire_id,
                fencing_token,
                names,
            } => {
                let granted = AcquireAnswer::Granted {
                    fencing_token: *fencing_token,
                    names: names.clone(),
                };
                ((*session_id, *acquire_id), Ok(granted))
            }
            Event::WaitEnded {
                session_id,
                acquire_id,
                reason,
                ..
            } => {
                let ended = match reason {
                    WaitEnd::TimedOut => Ok(AcquireAnswer::TimedOut),
                    WaitEnd::Released => Ok(AcquireAnswer::Released),
                    WaitEnd::Abandoned => Ok(AcquireAnswer::Abandoned),
                    WaitEnd::SessionClosed | WaitEnd::SessionExpired => Err(Refusal::SessionExpired),
                };
                ((*session_id, *acquire_id), ended)
            }
            Event::SessionOpened { .. }
            | Event::SessionClosed { .. }
            | Event::Queued { .. }
            | Event::Released { .. } => return,
        };
        self.wake(attempt, &acquired, wakeups);
    }

    /// After a snapshot was installed: whoever is no longer in line is told what the state says.
    pub(super) fn recheck(&mut self, state: &LockState, wakeups: &mut Wakeups) {
        let attempts: Vec<Attempt> = self.by_attempt.keys().copied().collect();
        for attempt in attempts {
            let (session_id, acquire_id) = attempt;
            match state.acquisition(session_id, acquire_id) {
                Some(AcquireAnswer::Queued) => self.mark_queued(attempt),
                Some(answer) => self.wake(attempt, &Ok(answer), wakeups),
                // Unknown to the state. For one that stood in line that means its session is over; the others'
                // acquire is still on its way, and they will hear of it.
                None if self.by_attempt[&attempt].iter().all(|waiter| waiter.queued) => {
                    self.wake(attempt, &Err(Refusal::SessionExpired), wakeups);
                }
                None => {}
            }
        }
    }

    /// The node stops: dropping the senders tells everybody that no answer will come from here.
    pub(super) fn clear(&mut self) {
        self.by_attempt.clear();
        self.count = 0;
    }

    fn wake(&mut self, attempt: Attempt, acquired: &Acquired, wakeups: &mut Wakeups) {
        let waiters = self.by_attempt.remove(&attempt).unwrap_or_default();
        self.count -= waiters.len();
        wakeups.extend(waiters.into_iter().map(|waiter| (waiter.wake, acquired.clone())));
    }
}
