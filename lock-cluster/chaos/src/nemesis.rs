//! Carries out the faults of a plan, and takes each back when its time is over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use lock_client::ClusterClient;
use lock_history::What;
use serde_json::json;
use testkit::found_within;
use tokio::time::sleep;

use crate::client::{Client, Crowd};
use crate::cluster::Cluster;
use crate::plan::{Fault, Lane, Plan, Plant, Step, Target};

/// From one try to the next, where a fault needs somebody to answer.
const TRY_EVERY: Duration = Duration::from_millis(50);
/// A new cluster has granted something by then.
const HOLD_WITHIN: Duration = Duration::from_secs(10);

/// What faults are done to.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) crowd: Crowd,
    pub(crate) clients: Mutex<Vec<Option<Client>>>,
}

impl World {
    /// All steps of a lane.
    pub(crate) async fn suffer(self: Arc<Self>, lane: Lane, mut seed: u64) -> anyhow::Result<()> {
        for step in lane {
            sleep(step.after).await;
            seed = seed.wrapping_add(1);
            self.step(step, seed).await?;
        }
        Ok(())
    }

    async fn step(&self, Step { lasts, fault, .. }: Step, seed: u64) -> anyhow::Result<()> {
        let cluster = &self.cluster;
        match fault {
            Fault::Kill(target) => {
                let at = self.find(target).await;
                cluster.kill(at);
                sleep(lasts).await;
                cluster.start_node(at)?;
            }
            Fault::Freeze(target) => {
                let at = self.find(target).await;
                cluster.freeze(at);
                sleep(lasts).await;
                cluster.thaw(at);
            }
            Fault::DieAfterCommit(target) => {
                let at = self.find(target).await;
                cluster.arm(at, "lock.after-commit", "exit", 100, 0).await;
                sleep(lasts).await;
                cluster.disarm(at, "lock.after-commit").await;
                cluster.start_node(at)?;
            }
            Fault::Isolate(target) => self.links(target, "error=503", lasts).await,
            Fault::Deafen(target) => self.links(target, "drop-reply", lasts).await,
            Fault::CutLink(at, other) => {
                cluster.cut(at, other, Some("error=503")).await;
                sleep(lasts).await;
                cluster.cut(at, other, None).await;
            }
            Fault::SlowDisk(target, ms) => {
                let at = self.find(target).await;
                cluster
                    .arm(at, "raft.append", &format!("delay={ms}ms"), 100, 0)
                    .await;
                sleep(lasts).await;
                cluster.disarm(at, "raft.append").await;
            }
            Fault::LoseAnswers(percent) => {
                for at in cluster.all() {
                    cluster
                        .arm(at, "lock.after-commit", "drop-reply", percent, seed)
                        .await;
                }
                sleep(lasts).await;
                for at in cluster.all() {
                    cluster.disarm(at, "lock.after-commit").await;
                }
            }
            Fault::LateAnswers(ms) => {
                let at = self.find(Target::Leader).await;
                cluster
                    .arm(at, "lock.after-commit", &format!("delay={ms}ms"), 100, 0)
                    .await;
                sleep(lasts).await;
                cluster.disarm(at, "lock.after-commit").await;
            }
            Fault::KillClient(which) => {
                let next = Client::start(self.crowd.clone(), seed)?;
                let killed = self.clients()[which].replace(next);
                if let Some(client) = killed {
                    // It may be frozen, and then its thread is waited for.
                    tokio::task::spawn_blocking(move || client.kill()).await?;
                }
            }
            Fault::FreezeClient(which) => {
                if let Some(client) = &self.clients()[which] {
                    client.freeze(lasts);
                }
                sleep(lasts).await;
            }
        }
        Ok(())
    }

    /// Whoever leads; while nobody does, whoever comes first.
    async fn find(&self, target: Target) -> usize {
        match target {
            Target::Node(at) => at,
            Target::Leader => self.cluster.wait_for_leader(TRY_EVERY * 20).await.unwrap_or(0),
        }
    }

    async fn links(&self, target: Target, effect: &str, lasts: Duration) {
        let at = self.find(target).await;
        let others = || self.cluster.all().filter(move |other| *other != at);
        for other in others() {
            self.cluster.cut(at, other, Some(effect)).await;
        }
        sleep(lasts).await;
        for other in others() {
            self.cluster.cut(at, other, None).await;
        }
    }

    /// Somebody looks who holds what, now and then breaks it, until the clients are to stop.
    pub(crate) async fn look(self: Arc<Self>, questions: ClusterClient, plan: Plan) {
        let crowd = &self.crowd;
        for number in 0_u64.. {
            if crowd.stopping.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            // Not drawn: every name in turn, the first ones more often, as they are wanted.
            let count = crowd.names.len() as u64;
            let name = &crowd.names[usize::try_from((number % count).min(number % 3)).unwrap_or(0)];
            let Ok(lock) = lock_core::LockName::parse(name) else {
                return;
            };
            crowd.scribe.note(What::Looks(number, lock));
            if let Ok(seen) = questions.lock(name).await {
                let token = seen
                    .and_then(|lock| lock.holder)
                    .map(|holder| holder.fencing_token);
                crowd.scribe.note(What::Saw(number, token));
                if let Some(token) = token.filter(|_| number % 16 == 7) {
                    crowd.scribe.note(What::Breaks(token));
                    // Refused if somebody else holds by now; unknown if nobody answers.
                    let _ = questions.break_lock(name, token).await;
                }
                if plan.plant == Some(Plant::EndedSessions) {
                    self.end_some_session(&questions, name).await;
                }
            }
            sleep(Duration::from_millis(60)).await;
        }
    }

    /// The planted bug: a holder's session is closed, and not by its holder. One that is in no hurry to let go.
    async fn end_some_session(&self, questions: &ClusterClient, name: &str) {
        const IN_NO_HURRY_MS: u64 = 40;
        let lock = questions.lock(name).await.ok().flatten();
        let holder = lock.and_then(|lock| lock.holder);
        if let Some(holder) = holder.filter(|holder| holder.held_ms > IN_NO_HURRY_MS) {
            let http = reqwest::Client::new();
            for url in self.cluster.urls() {
                let session = format!("{url}/v1/sessions/{}", holder.session_id);
                let closing = http.delete(session).timeout(Duration::from_millis(300));
                // All but the leader refuse.
                let _ = closing.send().await;
            }
        }
    }

    /// The planted bug: somebody who died long ago holds the last of the names.
    pub(crate) async fn hold_for_ever(&self) -> anyhow::Result<()> {
        let session = uuid::Uuid::new_v4();
        // Again and again with the same ids: who leads since a moment may not take anything on yet.
        let held = found_within(HOLD_WITHIN, async || self.hold(session).await.ok());
        held.await.context("the lock of the dead cannot be had")
    }

    async fn hold(&self, session: uuid::Uuid) -> anyhow::Result<()> {
        let leader = self.cluster.leader().await.context("nobody leads")?;
        let session = format!("{}/v1/sessions/{session}", self.cluster.url(leader));
        let http = reqwest::Client::new();
        let body = json!({ "ttl_ms": 300_000, "label": "dead" });
        http.put(&session).json(&body).send().await?.error_for_status()?;
        let body = json!({ "acquire_id": 1, "names": [self.crowd.names.last()], "wait_ms": 5_000 });
        let acquired = http
            .post(format!("{session}/acquisitions"))
            .json(&body)
            .send()
            .await?;
        acquired.error_for_status()?;
        Ok(())
    }

    /// The planted bug: everything that was acknowledged is gone from every disk.
    pub(crate) async fn forget_everything(&self) -> anyhow::Result<()> {
        for at in self.cluster.all() {
            self.cluster.kill(at);
            std::fs::remove_dir_all(self.cluster.data(at))?;
        }
        for at in self.cluster.all() {
            self.cluster.start_node(at)?;
        }
        Ok(())
    }

    pub(crate) fn clients(&self) -> std::sync::MutexGuard<'_, Vec<Option<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
