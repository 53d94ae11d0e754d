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
                None => self.wake_queued(attempt, &Err(Refusal::SessionExpired), wakeups),
            }
        }
    }

    /// Wakes those who stood in line, and leaves those whose acquire is on its way.
    fn wake_queued(&mut self, attempt: Attempt, acquired: &Acquired, wakeups: &mut Wakeups) {
        let waiters = self.by_attempt.remove(&attempt).unwrap_or_default();
        let (queued, coming): (Vec<Waiter>, Vec<Waiter>) =
            waiters.into_iter().partition(|waiter| waiter.queued);
        self.count -= queued.len();
        if !coming.is_empty() {
            self.by_attempt.insert(attempt, coming);
        }
        wakeups.extend(queued.into_iter().map(|waiter| (waiter.wake, acquired.clone())));
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

#[cfg(test)]
mod tests {
    use lock_core::{ClusterTime, Command, Label, LockNames, TtlMs, WaitMs};
    use uuid::Uuid;

    use super::*;

    const FIRST: Delivery = Delivery::new(1);
    const SECOND: Delivery = Delivery::new(2);

    fn attempt(session: u128, id: u64) -> Attempt {
        (SessionId::new(Uuid::from_u128(session)), AcquireId::new(id))
    }

    /// Sessions 1 and 2 are open; session 1 holds "gate" by its first attempt, session 2 stands in line by its own.
    fn contended() -> LockState {
        let mut state = LockState::new();
        for session in [1, 2] {
            let (session_id, acquire_id) = attempt(session, 1);
            let (ttl, label) = (TtlMs::new(60_000).unwrap(), Label::parse("test").unwrap());
            state.apply(
                ClusterTime::ZERO,
                Command::OpenSession {
                    session_id,
                    ttl,
                    label,
                },
            );
            let (names, wait) = (LockNames::parse(&["gate"]).unwrap(), WaitMs::new(60_000).unwrap());
            state.apply(
                ClusterTime::ZERO,
                Command::Acquire {
                    session_id,
                    acquire_id,
                    names,
                    wait,
                    delivery: FIRST,
                },
            );
        }
        state
    }

    fn woken(wakeups: Wakeups) -> usize {
        let woken = wakeups.len();
        wakeups
            .into_iter()
            .for_each(|(waiter, acquired)| waiter.send(acquired).unwrap());
        woken
    }

    #[test]
    fn everybody_who_asked_for_the_same_attempt_is_told() {
        let mut waiters = Waiters::default();
        let mut one = waiters.register(attempt(2, 1), FIRST);
        let mut other = waiters.register(attempt(2, 1), SECOND);
        let mut stranger = waiters.register(attempt(2, 2), FIRST);
        let mut state = contended();
        let (session_id, acquire_id) = attempt(1, 1);
        let applied = state.apply(
            ClusterTime::ZERO,
            Command::Release {
                session_id,
                acquire_id,
            },
        );
        let mut wakeups = Wakeups::new();
        applied
            .events
            .iter()
            .for_each(|event| waiters.hear(event, &mut wakeups));
        assert_eq!(woken(wakeups), 2);
        for told in [&mut one, &mut other] {
            assert!(matches!(told.try_recv(), Ok(Ok(AcquireAnswer::Granted { .. }))));
        }
        assert!(stranger.try_recv().is_err());
        assert_eq!(waiters.len(), 1);
    }

    #[test]
    fn after_a_snapshot_each_waiter_is_told_what_became_of_it() {
        let mut waiters = Waiters::default();
        let mut granted = waiters.register(attempt(1, 1), FIRST);
        let mut in_line = waiters.register(attempt(2, 1), FIRST);
        let mut of_a_dead_session = waiters.register(attempt(3, 1), FIRST);
        waiters.mark_queued(attempt(3, 1));
        let mut on_its_way = waiters.register(attempt(4, 1), FIRST);

        let mut wakeups = Wakeups::new();
        waiters.recheck(&contended(), &mut wakeups);
        assert_eq!(woken(wakeups), 2);
        assert!(matches!(
            granted.try_recv(),
            Ok(Ok(AcquireAnswer::Granted { .. }))
        ));
        assert_eq!(of_a_dead_session.try_recv(), Ok(Err(Refusal::SessionExpired)));
        assert!(in_line.try_recv().is_err(), "it still waits");
        assert!(on_its_way.try_recv().is_err(), "its acquire may still be applied");
    }

    #[test]
    fn a_repeat_on_its_way_does_not_keep_the_news_from_who_stood_in_line() {
        let mut waiters = Waiters::default();
        let mut in_line = waiters.register(attempt(3, 1), FIRST);
        waiters.mark_queued(attempt(3, 1));
        let mut repeat = waiters.register(attempt(3, 1), SECOND);
        let mut wakeups = Wakeups::new();
        waiters.recheck(&contended(), &mut wakeups);
        assert_eq!(woken(wakeups), 1);
        assert_eq!(in_line.try_recv(), Ok(Err(Refusal::SessionExpired)));
        assert!(repeat.try_recv().is_err(), "its acquire may still be applied");
        waiters.forget(attempt(3, 1), SECOND);
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn a_waiter_that_was_forgotten_leaves_the_others() {
        let mut waiters = Waiters::default();
        waiters.register(attempt(1, 1), FIRST);
        waiters.register(attempt(1, 1), SECOND);
        waiters.forget(attempt(1, 1), FIRST);
        assert_eq!(waiters.len(), 1);
        waiters.forget(attempt(1, 1), FIRST);
        waiters.forget(attempt(1, 1), SECOND);
        assert_eq!(waiters.len(), 0);
        assert!(waiters.by_attempt.is_empty());
    }
}
