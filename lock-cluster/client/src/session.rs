//! A session as its owner sees it: until when it can be relied on, and what is under way in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::SessionId;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::ids::Ids;

/// One session of the cluster, shared by its keep-alive task and by everything held through it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) ttl: Duration,
    /// The session can be relied on until then; moved on by keep-alives, counted from before they were sent.
    deadline: watch::Sender<Instant>,
    /// Set once, when the cluster says it is gone or the deadline has passed.
    lost: CancellationToken,
    ids: Mutex<Ids>,
    /// Attempts that an administrator took the locks from.
    broken: watch::Sender<Vec<u64>>,
    /// Wakes the keep-alive task before its time.
    wake: Notify,
    /// How many [`KeepAlivePause`]s are alive.
    pauses: watch::Sender<usize>,
    /// No new attempts begin here: the session closes when the last one is finished.
    retired: AtomicBool,
}

/// The cluster counts the TTL on its leader's clock and the client on its own, and clocks run at different rates:
/// crystals differ by 0.1 ‰, and one that is being slewed to the right time runs up to 0.5 ‰ off. So a client relies on
/// its session for a little less than the TTL, 2.5 ms of 5 seconds. What a client and a leader differ by beyond that is
/// not covered by the clock; the fencing token covers it.
const CLOCK_MARGIN: u32 = 2_000;

/// The part of `ttl` that is surely over later in the cluster than here.
fn relied_on(ttl: Duration) -> Duration {
    ttl - ttl / CLOCK_MARGIN
}

impl Session {
    /// A session the cluster has opened; `sent` is from before the first request that may have opened it.
    pub(crate) fn new(id: SessionId, ttl: Duration, sent: Instant) -> Self {
        Self {
            id,
            ttl,
            deadline: watch::Sender::new(sent + relied_on(ttl)),
            lost: CancellationToken::new(),
            ids: Mutex::default(),
            broken: watch::Sender::new(Vec::new()),
            wake: Notify::new(),
            pauses: watch::Sender::new(0),
            retired: AtomicBool::new(false),
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        *self.deadline.borrow()
    }

    /// A keep-alive that was sent at `sent` has succeeded. Too late if the deadline has passed meanwhile: whoever
    /// asked has been told "lost", and an answer that took so long may even be that of a session which began anew
    /// under the same id (a delayed open).
    pub(crate) fn extend(&self, sent: Instant) {
        let until = sent + relied_on(self.ttl);
        self.deadline.send_if_modified(|deadline| {
            let later = *deadline > Instant::now() && until > *deadline;
            if later {
                *deadline = until;
            }
            later
        });
    }

    /// Reads the clock as well as the flag: after a stop of the whole process no task has run yet to set it.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || self.deadline() <= Instant::now()
    }

    pub(crate) fn lose(&self) {
        self.lost.cancel();
    }

    /// Completes when the session is lost; at once if it already is.
    pub(crate) async fn lost(&self) {
        let mut moved = self.deadline.subscribe();
        loop {
            let until = *moved.borrow_and_update();
            tokio::select! {
                () = self.lost.cancelled() => return,
                () = sleep_until(until) => {
                    // A loss is final, also when a late answer to a keep-alive still arrives.
                    if self.deadline() <= until {
                        self.lose();
                        return;
                    }
                }
                _ = moved.changed() => {}
            }
        }
    }

    /// The cluster has told which attempts were broken; it tells each until it is released.
    pub(crate) fn set_broken(&self, acquire_ids: Vec<u64>) {
        self.broken.send_if_modified(|broken| {
            let changed = *broken != acquire_ids;
            *broken = acquire_ids;
            changed
        });
    }

    pub(crate) fn is_broken(&self, acquire_id: u64) -> bool {
        self.broken.borrow().contains(&acquire_id)
    }

    /// Completes when the attempt is known to be broken.
    pub(crate) async fn broken(&self, acquire_id: u64) {
        // An error would mean that the sender is gone, and it is a field of `self`.
        let _ = self
            .broken
            .subscribe()
            .wait_for(|broken| broken.contains(&acquire_id))
            .await;
    }

    /// The number of a new attempt, unless the session takes no more.
    pub(crate) fn begin(&self) -> Option<u64> {
        // Asked under the ids' lock: a session found dry and closed by its keep-alive task stays dry.
        let mut ids = self.ids();
        if self.is_retired() || self.is_lost() {
            None
        } else {
            ids.begin()
        }
    }

    /// Nothing of the attempt is left in the cluster.
    pub(crate) fn finish(&self, acquire_id: u64) {
        let many = self.ids().finish(acquire_id);
        if many || self.is_retired() {
            self.wake.notify_one();
        }
    }

    pub(crate) fn to_acknowledge(&self) -> Option<u64> {
        self.ids().to_acknowledge()
    }

    pub(crate) fn acknowledged(&self, acquire_id: u64) {
        self.ids().acknowledged(acquire_id);
    }

    /// Another session takes its place; what is under way here goes on.
    pub(crate) fn retire(&self) {
        let ids = self.ids();
        self.retired.store(true, Ordering::Relaxed);
        drop(ids);
        self.wake.notify_one();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Retired, and nothing is under way any more.
    pub(crate) fn is_dry(&self) -> bool {
        let ids = self.ids();
        self.is_retired() && ids.under_way() == 0
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn pause(&self) -> KeepAlivePause {
        self.pauses.send_modify(|pauses| *pauses += 1);
        KeepAlivePause {
            pauses: self.pauses.clone(),
        }
    }

    /// Completes while no pause is alive.
    pub(crate) async fn not_paused(&self) {
        // An error would mean that the sender is gone, and it is a field of `self`.
        let _ = self.pauses.subscribe().wait_for(|pauses| *pauses == 0).await;
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        // Nothing can panic half-way through a change of `Ids`, so a poisoned lock still guards good values.
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, a session is not kept alive: the lab's "holder that was paused for too long".
#[derive(Debug)]
#[must_use = "the keep-alive goes on as soon as this is dropped"]
pub struct KeepAlivePause {
    pauses: watch::Sender<usize>,
}

impl Drop for KeepAlivePause {
    fn drop(&mut self) {
        self.pauses.send_modify(|pauses| *pauses -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SessionId = SessionId::new(uuid::Uuid::nil());
    const TTL: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn the_deadline_runs_from_before_the_keep_alive_was_sent() {
        let sent = Instant::now();
        let session = Session::new(ID, TTL, sent);
        tokio::time::advance(Duration::from_secs(3)).await;
        let sent = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        session.extend(sent);
        assert_eq!(session.deadline(), sent + relied_on(TTL));
        tokio::time::advance(relied_on(TTL) - Duration::from_millis(1_001)).await;
        assert!(!session.is_lost());
        session.lost().await;
        // Timers count whole milliseconds.
        let late = Instant::now() - session.deadline();
        assert!(late <= Duration::from_millis(1), "{late:?}");
        assert!(session.is_lost());
    }

    #[test]
    fn a_clock_that_is_slow_by_the_margin_still_says_lost_first() {
        for ttl in [TTL, Duration::from_secs(300)] {
            // What the slow clock takes for the time that is relied on is more in truth, and not more than the TTL.
            let in_truth = relied_on(ttl).as_secs_f64() * (1.0 + 499e-6);
            assert!(in_truth <= ttl.as_secs_f64(), "{in_truth} of {ttl:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_session_stays_lost_and_begins_nothing() {
        let session = Session::new(ID, TTL, Instant::now());
        assert_eq!(session.begin(), Some(1));
        tokio::time::advance(TTL).await;
        session.lost().await;
        session.extend(Instant::now());
        assert!(session.is_lost());
        assert_eq!(session.begin(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_does_not_bring_a_lost_session_back() {
        let session = Session::new(ID, TTL, Instant::now());
        tokio::time::advance(relied_on(TTL) - Duration::from_millis(1)).await;
        let sent = Instant::now();
        tokio::time::advance(Duration::from_millis(1)).await;
        // By the clock alone: no task has run that could have set the flag.
        assert!(session.is_lost());
        session.extend(sent);
        assert!(session.is_lost(), "a loss is final");
    }

    #[tokio::test(start_paused = true)]
    async fn a_retired_session_is_dry_after_its_last_attempt() {
        let session = Session::new(ID, TTL, Instant::now());
        let id = session.begin().unwrap();
        session.retire();
        assert_eq!(session.begin(), None);
        assert!(!session.is_dry());
        session.finish(id);
        assert!(session.is_dry());
    }
}
