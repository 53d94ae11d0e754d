//! What clients do all day.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lock_core::{AcquireAnswer, LockNames, Refusal, Reply, WaitMs};
use openraft::AsyncRuntime;
use openraft_rt::Select2;
use rand::RngExt;

use super::Inner as Client;
use super::session::Session;
use crate::cluster::{Answer, Request};
use crate::runtime::SimRt;
use lock_history::{Attempt, Verdict, What};

/// How much longer than its wait one try of an acquire is waited for, and the whole of it.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_000);
const PATIENCE: Duration = Duration::from_secs(4);
const TRY: Duration = Duration::from_millis(800);

/// One attempt after another, until the session is over or the client stops.
pub(super) async fn work(client: Arc<Client>, session: Arc<Session>) {
    // Sessions that last for ever would never be closed in the middle of things.
    let attempts = client.rng().random_range(3..40);
    for _ in 0..attempts {
        if !session.is_trusted() || client.stopping.load(Ordering::Relaxed) {
            break;
        }
        let worker = Worker {
            client: &client,
            session: &session,
            attempt: session.begin(),
        };
        let acquire = worker.attempt().await;
        session.finish(worker.attempt, acquire);
        SimRt::sleep(client.millis(0..150)).await;
        if client.chance(30)
            && let Some((attempt, acquire)) = session.some_past()
        {
            let worker = Worker { attempt, ..worker };
            worker.ask(&acquire, TRY).await;
        }
    }
}

struct Worker<'a> {
    client: &'a Client,
    session: &'a Session,
    attempt: Attempt,
}

impl Worker<'_> {
    /// From asking to release. Returns what was asked.
    async fn attempt(&self) -> Request {
        let (names, wait) = (self.some_names(), self.some_wait());
        self.note(What::Asked(self.attempt, names.clone()));
        let acquire = Request::Acquire(self.session.id, self.attempt.id, names, wait);
        let wait = Duration::from_millis(wait.get());
        // Some change their minds while they wait.
        let patience = match self.client.chance(12) {
            true => self.client.millis(1..1_500),
            false => wait + PATIENCE,
        };
        let told = SimRt::timeout(patience, self.ask(&acquire, wait + ANSWER_WITHIN)).await;
        match told.ok().flatten() {
            Some(Verdict::Granted(_)) => {
                self.hold(&acquire).await;
                self.release(&acquire).await;
            }
            Some(_) if self.client.chance(30) => {
                self.ask(&acquire, TRY).await;
            }
            Some(_) => {}
            // Nobody told. It may hold by now, or stand in line, or come to: all of that must end.
            None => self.release(&acquire).await,
        }
        acquire
    }

    async fn hold(&self, acquire: &Request) {
        let long = self.client.chance(10);
        let time = self.client.millis(if long { 500..3_000 } else { 1..250 });
        if self.client.chance(25) {
            // "Do I hold it?" The answer must be the same, and asking must not harm.
            let _ = SimRt::timeout(time, self.ask(acquire, TRY)).await;
        }
        let lost = async {
            self.session.is_over().await;
        };
        let mut left = time;
        let slice = Duration::from_millis(50);
        let mut lost = std::pin::pin!(lost);
        while left > Duration::ZERO && !self.session.is_broken(self.attempt) {
            let nap = SimRt::sleep(left.min(slice));
            if let Select2::First(()) = SimRt::select2(lost.as_mut(), nap).await {
                return;
            }
            left = left.saturating_sub(slice);
        }
    }

    async fn release(&self, acquire: &Request) {
        self.note(What::LetGo(self.attempt));
        let release = Request::Release(self.session.id, self.attempt.id);
        let answer = self
            .client
            .asking
            .until(&release, TRY, || !self.session.is_trusted())
            .await;
        match answer {
            Some((_, Answer::Done(Reply::Released))) => self.note(What::Released(self.attempt)),
            Some((_, Answer::Done(Reply::Refused(Refusal::NotHeld)))) => {
                self.note(What::NotHeld(self.attempt))
            }
            Some((_, Answer::Done(Reply::Refused(Refusal::SessionExpired)))) => self.session.expired(),
            Some((_, other)) => unreachable!("a release is not answered with {other:?}"),
            None => return,
        }
        if self.client.chance(30) {
            self.ask(acquire, TRY).await;
        }
    }

    /// Asks how the attempt stands, until it is told.
    async fn ask(&self, acquire: &Request, patience: Duration) -> Option<Verdict> {
        let answer = self
            .client
            .asking
            .until(acquire, patience, || !self.session.is_trusted())
            .await;
        let verdict = match answer?.1 {
            Answer::Acquired(Ok(AcquireAnswer::Granted { fencing_token, .. })) => {
                Verdict::Granted(fencing_token.get())
            }
            Answer::Acquired(Ok(AcquireAnswer::Held)) => Verdict::Held,
            Answer::Acquired(Ok(AcquireAnswer::TimedOut)) => Verdict::TimedOut,
            Answer::Acquired(Ok(AcquireAnswer::Abandoned)) => Verdict::Abandoned,
            Answer::Acquired(Ok(AcquireAnswer::Released)) => Verdict::Released,
            Answer::Acquired(Ok(AcquireAnswer::Broken)) => Verdict::Broken,
            Answer::Acquired(Err(Refusal::Acknowledged)) => Verdict::Acknowledged,
            Answer::Acquired(Err(Refusal::SessionExpired)) => {
                self.session.expired();
                return None;
            }
            other => unreachable!("an acquire is not answered with {other:?}"),
        };
        if !self.session.is_trusted() {
            self.session.distrust();
        }
        self.note(What::Told(self.attempt, verdict));
        Some(verdict)
    }

    fn note(&self, what: What) {
        self.client.scribe.note(self.client.me, what);
    }

    /// Mostly one, and mostly the same one.
    fn some_names(&self) -> LockNames {
        let all = &self.client.names;
        let mut rng = self.client.rng();
        let many = match rng.random_range(0..10) {
            0..=6 => 1,
            7..=8 => 2,
            _ => 3,
        };
        let picked = (0..many).map(|_| {
            let at = rng.random_range(0..all.len()).min(rng.random_range(0..all.len()));
            all[at].clone()
        });
        LockNames::new(picked.collect::<Vec<_>>()).expect("one to three names")
    }

    fn some_wait(&self) -> WaitMs {
        let ms = match self.client.rng().random_range(0..10) {
            0..=1 => 0,
            2..=4 => 400,
            _ => 3_000,
        };
        WaitMs::new(ms).expect("within the limits")
    }
}
