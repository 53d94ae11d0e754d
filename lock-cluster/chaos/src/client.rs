//! A client of the cluster: the public client library in a thread with a runtime of its own.
//!
//! Of its own, so that it can die like a process: the runtime is dropped with everything in it, no session is closed
//! and nothing is released. And so that it can freeze like one: the thread sleeps, its keep-alive with it, and its
//! connections stay open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lock_client::{ClientConfig, LockClient, LockError};
use lock_core::{AcquireId, LockNames, SessionId};
use lock_history::{Attempt, Verdict, What};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::scribe::Scribe;

/// Attempts that one client makes at a time.
const WORKERS: u64 = 2;
/// The shortest and the longest time to live that clients ask for.
const TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=2_000;
/// The longest time to live of any client.
pub const TTL_MAX: Duration = Duration::from_millis(*TTL_MS.end());
/// How long a client is waited for when it has been asked to stop.
const RELEASE_WITHIN: Duration = Duration::from_secs(10);

/// What all clients of a run share.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// Where the cluster is.
    pub config: ClientConfig,
    /// What they lock.
    pub names: Arc<[String]>,
    /// Where they write down what they see.
    pub scribe: Scribe,
    /// Whether they shall finish.
    pub stopping: Arc<AtomicBool>,
}

/// A client that runs.
#[derive(Debug)]
pub struct Client {
    session: SessionId,
    scribe: Scribe,
    killed: watch::Sender<bool>,
    freezes: mpsc::Sender<Duration>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// Starts one. The id is the history's: through it go as many real sessions as it takes.
    ///
    /// # Errors
    /// If the machine has no thread left.
    pub fn start(crowd: Crowd, seed: u64) -> anyhow::Result<Self> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let session = SessionId::new(Uuid::from_u128(rng.random()));
        let (killed, mut dies) = watch::channel(false);
        let (freezes, mut freezing) = mpsc::channel::<Duration>(1);
        let scribe = crowd.scribe.clone();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let live = move || {
            runtime.block_on(async {
                tokio::spawn(async move {
                    while let Some(time) = freezing.recv().await {
                        std::thread::sleep(time);
                    }
                });
                tokio::select! {
                    biased;
                    _ = dies.wait_for(|dies| *dies) => {}
                    () = live(crowd, session, rng) => {}
                }
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new()
            .name("client".to_owned())
            .spawn(live)?;
        Ok(Self {
            session,
            scribe,
            killed,
            freezes,
            thread: Some(thread),
        })
    }

    /// It dies.
    pub fn kill(mut self) {
        self.scribe.died(self.session);
        self.killed.send_replace(true);
        self.join();
    }

    /// It does not get the processor for a while.
    pub fn freeze(&self, time: Duration) {
        // One that freezes already need not be frozen again.
        let _ = self.freezes.try_send(time);
    }

    /// Whether it has left, having been asked to.
    pub fn has_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed; what it did not do is missing in the history.
            let _ = thread.join();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.killed.send_replace(true);
        self.join();
    }
}

async fn live(crowd: Crowd, session: SessionId, mut rng: SmallRng) {
    let mut config = crowd.config.clone();
    config.ttl = Duration::from_millis(rng.random_range(TTL_MS));
    config.label = "chaos".to_owned();
    let Ok(client) = LockClient::connect(config).await else {
        return;
    };
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let worker = Worker {
                crowd: crowd.clone(),
                client: client.clone(),
                session,
                // The history's ids of different workers must differ.
                next_id: number,
                rng: SmallRng::seed_from_u64(rng.random()),
            };
            tokio::spawn(worker.work())
        })
        .collect();
    for worker in workers {
        if let Err(stopped) = worker.await {
            crowd.scribe.complain(format!("a client stopped: {stopped}"));
        }
    }
    client.close().await;
}

struct Worker {
    crowd: Crowd,
    client: LockClient,
    session: SessionId,
    next_id: u64,
    rng: SmallRng,
}

impl Worker {
    async fn work(mut self) {
        while !self.crowd.stopping.load(Ordering::Relaxed) {
            self.attempt().await;
            sleep(self.millis(0..20)).await;
        }
    }

    /// From asking to release.
    async fn attempt(&mut self) {
        self.next_id += WORKERS;
        let attempt = Attempt {
            session: self.session,
            id: AcquireId::new(self.next_id),
        };
        let names = self.some_names();
        let asked = LockNames::parse(&names).expect("names that can be locked");
        let scribe = self.crowd.scribe.clone();
        scribe.note(What::Asked(attempt, asked));
        let wait = match self.rng.random_range(0..10) {
            0..=1 => Duration::ZERO,
            2..=4 => Duration::from_millis(300),
            _ => Duration::from_secs(3),
        };
        // Some change their minds while they wait.
        let changes = self.rng.random_bool(0.1);
        let patience = if changes {
            self.millis(1..800)
        } else {
            Duration::from_secs(60)
        };
        let acquiring = self.client.acquire(&names, wait);
        let grant = match timeout(patience, acquiring).await {
            Ok(Ok(grant)) => Arc::new(grant),
            // Both say only that *this* attempt is not granted in the end: see `Scribe::history`.
            Ok(Err(LockError::Held | LockError::WaitTimeout)) => {
                return scribe.note(What::Told(attempt, Verdict::TimedOut));
            }
            Ok(Err(error)) if error.retryable() => return,
            Ok(Err(error)) => return scribe.complain(format!("{attempt} was refused: {error}")),
            Err(_changed_its_mind) => return,
        };
        scribe.granted(attempt, &grant);
        let long = self.rng.random_bool(0.04);
        let time = self.millis(if long { 300..1_500 } else { 1..30 });
        tokio::select! {
            () = grant.lost() => {}
            () = sleep(time) => {}
        }
        scribe.let_go(attempt);
        let Some(grant) = Arc::into_inner(grant) else {
            return;
        };
        if self.rng.random_bool(0.1) {
            // Released in the background, or by nobody if the client dies before.
            drop(grant);
        } else if let Ok(Ok(())) = timeout(RELEASE_WITHIN, grant.release()).await {
            scribe.note(What::Released(attempt));
        }
    }

    /// Mostly one, and mostly the same one.
    fn some_names(&mut self) -> Vec<String> {
        let all = self.crowd.names.clone();
        let many = if self.rng.random_bool(0.2) { 2 } else { 1 };
        let rng = &mut self.rng;
        let mut pick = || rng.random_range(0..all.len()).min(rng.random_range(0..all.len()));
        let mut picked: Vec<String> = (0..many).map(|_| all[pick()].clone()).collect();
        picked.dedup();
        picked
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.rng.random_range(range))
    }
}
