//! The prober: asks everybody whether they are ready, and keeps the topology that the page shows.
//!
//! A refused connection is noticed where it happens, by the request itself; the prober is there for the way
//! back, and for instances that answer but are not ready. It also reads the list of locks for whoever watches
//! the stream, and only then: nobody watching, nothing asked.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use futures::future::join_all;
use http::StatusCode;
use http::uri::PathAndQuery;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::topology::{ClusterView, Health, NodeStatus, NodeView, Topology};
use crate::upstream::instance::{Instance, NoAnswer};
use crate::upstream::leader::Nodes;
use crate::upstream::parcel::Parcel;
use crate::upstream::pool::Pool;

/// How long an instance may take to say how it is.
const ANSWER_WITHIN: Duration = Duration::from_millis(2500);
/// Longest answer that is read.
const ANSWER_LEN_MAX: usize = 4 * 1024 * 1024;
/// How a lock node is that takes the front door for a stranger.
const REFUSED: &str = "it refuses the front door: LOCK_CLIENT_TOKEN is missing or is not the cluster's";
/// How many locks are asked for, and how many are shown.
const LOCKS_ASKED: usize = 300;
const LOCKS_SHOWN: usize = 12;
/// How many of a lock's waiters are shown by name.
const WAITERS_SHOWN: usize = 12;

/// A lock as the page shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockLine {
    name: String,
    holder: Option<serde_json::Value>,
    /// The next ones.
    waiters: Vec<serde_json::Value>,
    /// How many there are altogether; the node lists only the first ones.
    #[serde(default, alias = "waiters_total")]
    waiting: usize,
}

#[derive(Deserialize)]
struct LockList {
    locks: Vec<LockLine>,
}

/// Looks after everybody until `shutdown` falls.
pub(crate) struct Prober {
    pub(crate) pools: Vec<Pool>,
    pub(crate) nodes: Nodes,
    pub(crate) topology: watch::Sender<Topology>,
    pub(crate) locks: watch::Sender<Vec<LockLine>>,
    pub(crate) every: Duration,
}

impl Prober {
    /// Runs until `shutdown` falls.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(self.every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = tick.tick() => {}
            }
            // A probe may hang as long as its instance does; the end need not wait for it.
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.run_once() => {}
            }
        }
    }

    /// Asks everybody once, all at the same time.
    pub(crate) async fn run_once(&self) {
        let instances = self.pools.iter().flat_map(Pool::instances);
        let (_, nodes, locks) = tokio::join!(
            join_all(instances.map(probe)),
            join_all(self.nodes.nodes().iter().map(|node| self.probe_node(node))),
            self.read_locks(),
        );
        let services = self.pools.iter().map(Pool::view).collect();
        let now = Topology {
            services,
            cluster: ClusterView::of(nodes),
        };
        self.topology.send_if_modified(|known| replace(known, now));
        if let Some(locks) = locks {
            self.locks.send_if_modified(|known| replace(known, locks));
        }
    }

    async fn read_locks(&self) -> Option<Vec<LockLine>> {
        if self.locks.receiver_count() == 0 {
            return None;
        }
        let path = PathAndQuery::try_from(format!("/v1/locks?limit={LOCKS_ASKED}")).ok()?;
        let ask = self.nodes.send(self.nodes.question(path), true);
        let response = tokio::time::timeout(ANSWER_WITHIN, ask).await.ok()?.ok()?;
        let list: LockList = read(response).await?;
        Some(shown(list.locks))
    }

    /// A node's readiness, and what it says of itself. It says that to clients only, where the cluster knows them by a
    /// token; one that does not know the front door is of no use to it.
    async fn probe_node(&self, node: &Arc<Instance>) -> NodeView {
        let ask = node.send(
            self.nodes.question(PathAndQuery::from_static("/v1/cluster")),
            ANSWER_WITHIN,
        );
        let (found, answer) = tokio::join!(look(node), ask);
        let (found, status) = match answer {
            Ok(refusal) if refusal.status() == StatusCode::UNAUTHORIZED => {
                (Some((Health::Unready, Some(REFUSED.to_owned()))), None)
            }
            Ok(response) => (found, read::<NodeStatus>(response).await),
            Err(_) => (found, None),
        };
        if let Some((health, detail)) = found {
            node.note(health, detail);
        }
        NodeView {
            instance: node.view(),
            status,
        }
    }
}

/// The locks worth showing: stock and whatever somebody takes by hand. Purchases and payments have one lock
/// each, held for milliseconds; a thousand of them would hide the one that everybody waits for.
fn shown(locks: Vec<LockLine>) -> Vec<LockLine> {
    let passing = |lock: &LockLine| lock.name.starts_with("purchase/") || lock.name.starts_with("payment/");
    let mut locks: Vec<_> = locks.into_iter().filter(|lock| !passing(lock)).collect();
    for lock in &mut locks {
        lock.waiting = lock.waiting.max(lock.waiters.len());
        lock.waiters.truncate(WAITERS_SHOWN);
    }
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.waiting));
    locks.truncate(LOCKS_SHOWN);
    locks
}

async fn probe(instance: &Arc<Instance>) {
    if let Some((health, detail)) = look(instance).await {
        instance.note(health, detail);
    }
}

/// How an instance is, and why; `None` if that is known already.
async fn look(instance: &Instance) -> Option<(Health, Option<String>)> {
    let answer = instance
        .send(Parcel::get(PathAndQuery::from_static("/readyz")), ANSWER_WITHIN)
        .await;
    match answer {
        Ok(response) if response.status().is_success() => Some((Health::Up, None)),
        Ok(response) => {
            #[derive(Deserialize)]
            struct Detail {
                detail: String,
            }
            let status = response.status();
            let detail = read::<Detail>(response).await.map(|problem| problem.detail);
            let detail = detail.unwrap_or_else(|| format!("it answered {status}"));
            Some((Health::Unready, Some(detail)))
        }
        Err(NoAnswer::NotSent(_)) => None, // noted where it happened
        Err(NoAnswer::Broken(why)) => Some((Health::Down, Some(why))),
        Err(NoAnswer::Late) => Some((Health::Unready, Some("it does not answer in time".to_owned()))),
    }
}

async fn read<T: DeserializeOwned>(response: axum::response::Response) -> Option<T> {
    let body = tokio::time::timeout(ANSWER_WITHIN, to_bytes(response.into_body(), ANSWER_LEN_MAX)).await;
    serde_json::from_slice(&body.ok()?.ok()?).ok()
}

fn replace<T: PartialEq>(known: &mut T, now: T) -> bool {
    let differs = *known != now;
    *known = now;
    differs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_that_everybody_waits_for_is_shown_first_and_cut_short() {
        let line = |name: &str, waiting: usize| LockLine {
            name: name.into(),
            holder: None,
            waiters: vec![serde_json::json!({}); waiting],
            waiting: 0,
        };
        let locks = shown(vec![
            line("demo", 0),
            line("event/e", 40),
            line("purchase/p", 1),
            line("payment/p", 1),
        ]);
        let lines: Vec<_> = locks
            .iter()
            .map(|l| (l.name.as_str(), l.waiting, l.waiters.len()))
            .collect();
        assert_eq!(lines, [("event/e", 40, WAITERS_SHOWN), ("demo", 0, 0)]);
    }
}
