//! Clients: as careful as the real one, and as clumsy as those who use it.
//!
//! A client opens a session, keeps it alive at a third of its time to live, and counts its own deadline from before
//! the last keep-alive that was answered. Two workers acquire, hold, release, ask again for what they know already,
//! change their minds while they wait. Answers are interpreted as the real client does: another leader → ask there;
//! unknown, no leader, silence → ask again elsewhere, same ids. What it believes goes into the history.

mod asking;
mod session;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::{LockName, Reply, SessionId, TtlMs};
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

pub use self::asking::Asking;
use self::session::Session;
use crate::cluster::{Answer, Request};
use crate::network::{Endpoint, Network, name};
use crate::runtime::{Scope, SimRt, true_ns};
use crate::trace::Trace;
use lock_history::{History, Moment, What};

/// Attempts that one session makes at a time.
const WORKERS: usize = 2;
/// The shortest and the longest time to live that clients ask for.
const TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=4_000;

/// The longest time to live of any client.
pub const TTL_MAX: Duration = Duration::from_millis(*TTL_MS.end());

/// Where clients write down what they see; clones write into the same history.
#[derive(Clone)]
pub struct Scribe {
    history: Arc<Mutex<History>>,
    trace: Trace,
}

impl Scribe {
    /// An empty history.
    pub fn new(trace: Trace) -> Self {
        Self {
            history: Arc::default(),
            trace,
        }
    }

    /// It happened now, to somebody.
    pub fn note(&self, who: Endpoint, what: What) {
        self.trace.tell(format!("{} {what:?}", name(who)));
        let at = true_ns();
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.push(Moment { at, what });
    }

    /// All of it.
    pub fn history(&self) -> History {
        self.history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// One process that uses the cluster.
pub struct Client {
    scope: Arc<Scope>,
    inner: Arc<Inner>,
}

/// What the tasks of a client share.
struct Inner {
    me: Endpoint,
    asking: Asking,
    scribe: Scribe,
    names: Arc<[LockName]>,
    rng: Mutex<SmallRng>,
    session: Mutex<Option<SessionId>>,
    stopping: AtomicBool,
    finished: AtomicBool,
}

impl Client {
    /// Starts one.
    pub fn start(
        me: Endpoint,
        seed: u64,
        scope: Arc<Scope>,
        network: Network,
        nodes: u64,
        scribe: Scribe,
        names: Arc<[LockName]>,
    ) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let asking = Asking::new(network, me, nodes, rng.random());
        let inner = Arc::new(Inner {
            me,
            asking,
            scribe,
            names,
            rng: Mutex::new(rng),
            session: Mutex::default(),
            stopping: AtomicBool::default(),
            finished: AtomicBool::default(),
        });
        drop(Scope::spawn(Some(scope.clone()), inner.clone().live()));
        Self { scope, inner }
    }

    /// Asks it to finish what it does, and to leave.
    pub fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether it has left.
    pub fn has_finished(&self) -> bool {
        self.inner.finished.load(Ordering::Relaxed)
    }

    /// Its process dies. It believes in nothing any more.
    pub fn kill(&self) {
        self.scope.kill();
        if let Some(session) = *self.inner.session() {
            self.inner.scribe.note(self.inner.me, What::Distrusted(session));
        }
    }

    /// Its process does not get the processor, or does again.
    pub fn set_paused(&self, paused: bool) {
        match paused {
            true => self.scope.pause(),
            false => self.scope.resume(),
        }
    }
}

impl Inner {
    async fn live(self: Arc<Self>) {
        while !self.stopping.load(Ordering::Relaxed) {
            let Some(session) = self.open().await else {
                continue;
            };
            drop(Scope::spawn(None, session.clone().watch_deadline()));
            let keeper = SimRt::spawn(session.clone().keep_alive());
            let workers: Vec<_> = (0..WORKERS)
                .map(|_| SimRt::spawn(worker::work(self.clone(), session.clone())))
                .collect();
            for worker in workers {
                let _ = worker.await;
            }
            // Most say goodbye; from the others the cluster must find out by itself.
            let polite = self.chance(85) || self.stopping.load(Ordering::Relaxed);
            session.distrust();
            let _ = keeper.await;
            if polite {
                let close = Request::Close(session.id);
                self.asking.until(&close, Duration::from_secs(1), || false).await;
            }
        }
        self.finished.store(true, Ordering::Relaxed);
    }

    async fn open(self: &Arc<Self>) -> Option<Arc<Session>> {
        let id = SessionId::new(Uuid::from_u128(self.rng().random()));
        let ttl_ms = self.rng().random_range(TTL_MS);
        let ttl = TtlMs::new(ttl_ms).expect("within the limits");
        *self.session() = Some(id);
        let tries = Duration::from_secs(1);
        let gone = || self.stopping.load(Ordering::Relaxed);
        let (sent, answer) = self.asking.until(&Request::Open(id, ttl), tries, gone).await?;
        match answer {
            Answer::Done(Reply::SessionOpened { .. }) => Some(Session::new(id, ttl, sent, self.clone())),
            other => unreachable!("a session is opened, not answered with {other:?}"),
        }
    }

    fn chance(&self, percent: u32) -> bool {
        self.rng().random_range(0..100) < percent
    }

    fn millis(&self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.rng().random_range(range))
    }

    fn rng(&self) -> MutexGuard<'_, SmallRng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, Option<SessionId>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
