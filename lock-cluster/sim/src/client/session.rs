//! A session as its client sees it: until when to trust it, and which attempts are done.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::{AcquireId, Refusal, Reply, SessionId, TtlMs};
use lock_node::ServiceRt;
use openraft::AsyncRuntime;
use openraft_rt::Select2;
use rand::RngExt;
use tokio::sync::Notify;

use super::Inner as Client;
use crate::cluster::{Answer, Request};
use crate::runtime::{LocalInstant, SimRt, true_moment, true_ns};
use lock_history::{Attempt, What};

pub(super) struct Session {
    pub(super) id: SessionId,
    ttl: Duration,
    client: Arc<Client>,
    /// Whether it lets the cluster forget what it will not ask about again. Some never do, and ask about anything.
    acknowledges: bool,
    inner: Mutex<Inner>,
    over: Notify,
}

struct Inner {
    /// Until then nobody else can have been told to hold what this session holds; on the client's clock, and in truth.
    deadline: LocalInstant,
    true_deadline: u64,
    distrusted: bool,
    last_id: u64,
    /// What came to an end, and how it was asked for.
    past: Vec<(Attempt, Request)>,
    under_way: BTreeSet<u64>,
    broken: BTreeSet<AcquireId>,
}

/// As the real client: less by half a thousandth, as clocks differ.
fn relied_on(ttl: Duration) -> Duration {
    ttl - ttl / 2_000
}

impl Session {
    pub(super) fn new(id: SessionId, ttl: TtlMs, sent: LocalInstant, client: Arc<Client>) -> Arc<Self> {
        let ttl = Duration::from_millis(ttl.get());
        Arc::new(Self {
            id,
            ttl,
            acknowledges: client.chance(50),
            client,
            inner: Mutex::new(Inner {
                deadline: sent + relied_on(ttl),
                true_deadline: true_moment(sent + relied_on(ttl)),
                distrusted: false,
                last_id: 0,
                past: Vec::new(),
                under_way: BTreeSet::new(),
                broken: BTreeSet::new(),
            }),
            over: Notify::new(),
        })
    }

    /// Whether what it holds is surely held. Reads the clock: after a pause no task has run yet to tell.
    pub(super) fn is_trusted(&self) -> bool {
        let inner = self.inner();
        !inner.distrusted && SimRt::now() < inner.deadline
    }

    /// From now on nothing that was got through it counts.
    pub(super) fn distrust(&self) {
        let before = std::mem::replace(&mut self.inner().distrusted, true);
        if !before {
            self.client.scribe.note(self.client.me, What::Distrusted(self.id));
            self.over.notify_waiters();
        }
    }

    /// The cluster says that it is over.
    pub(super) fn expired(&self) {
        if !self.is_trusted() {
            self.distrust();
        }
        self.client.scribe.note(self.client.me, What::Expired(self.id));
        self.distrust();
    }

    pub(super) fn begin(&self) -> Attempt {
        let mut inner = self.inner();
        inner.last_id += 1;
        let id = inner.last_id;
        inner.under_way.insert(id);
        Attempt {
            session: self.id,
            id: AcquireId::new(id),
        }
    }

    pub(super) fn finish(&self, attempt: Attempt, acquire: Request) {
        let mut inner = self.inner();
        inner.under_way.remove(&attempt.id.get());
        inner.past.push((attempt, acquire));
    }

    /// One of those that came to an end.
    pub(super) fn some_past(&self) -> Option<(Attempt, Request)> {
        let inner = self.inner();
        let past = inner.past.len();
        (past > 0).then(|| inner.past[self.client.rng().random_range(0..past)].clone())
    }

    pub(super) fn is_broken(&self, attempt: Attempt) -> bool {
        self.inner().broken.contains(&attempt.id)
    }

    /// Ends at the deadline, if no keep-alive has moved it on. A task of the world's: a client that is paused stops
    /// believing at its deadline all the same, for it would read its clock before it did anything.
    pub(super) async fn watch_deadline(self: Arc<Self>) {
        loop {
            let deadline = self.inner().true_deadline;
            if self.inner().distrusted {
                return;
            }
            let left = deadline.saturating_sub(true_ns());
            if left == 0 {
                return self.distrust();
            }
            let nap = SimRt::sleep(Duration::from_nanos(left));
            if let Select2::First(()) = SimRt::select2(self.is_over(), nap).await {
                return;
            }
        }
    }

    pub(super) async fn keep_alive(self: Arc<Self>) {
        loop {
            let pause = SimRt::sleep(self.ttl / 3);
            if let Select2::First(()) = SimRt::select2(self.is_over(), pause).await {
                return;
            }
            let acknowledged = self.acknowledges.then(|| self.done_up_to()).flatten();
            let request = Request::KeepAlive(self.id, acknowledged);
            let answer = self
                .client
                .asking
                .until(&request, self.ttl / 4, || !self.is_trusted())
                .await;
            match answer {
                Some((sent, Answer::Done(Reply::KeptAlive { broken, .. }))) => {
                    let mut inner = self.inner();
                    inner.deadline = inner.deadline.max(sent + relied_on(self.ttl));
                    inner.true_deadline = true_moment(inner.deadline);
                    inner.broken = broken.into_iter().collect();
                }
                Some((_, Answer::Done(Reply::Refused(Refusal::SessionExpired)))) => self.expired(),
                Some((_, other)) => unreachable!("a keep-alive is not answered with {other:?}"),
                None => return,
            }
        }
    }

    /// Resolves when it is no longer trusted.
    pub(super) async fn is_over(&self) {
        let mut over = std::pin::pin!(self.over.notified());
        over.as_mut().enable();
        if !self.inner().distrusted {
            over.await;
        }
    }

    /// All ids up to this one are done with.
    fn done_up_to(&self) -> Option<AcquireId> {
        let inner = self.inner();
        let first_under_way = inner.under_way.first().copied().unwrap_or(inner.last_id + 1);
        (first_under_way > 1).then(|| AcquireId::new(first_under_way - 1))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
