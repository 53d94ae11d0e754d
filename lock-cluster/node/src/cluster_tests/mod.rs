//! Three nodes in one process, over real sockets and real files: what must hold when one of them, or all, go away.
//!
//! These tests are inside the crate because they reach for what clients cannot: a snapshot every few entries, a
//! node's disk, its fault points. The HTTP side of the same stories is told in `tests/it`.

mod agreement;
mod bounds;
mod cancelled;
mod changes;
mod disks;
mod founding;
mod trouble;
mod waiting;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use lock_core::{
    AcquireAnswer, AcquireId, Command, Label, LockName, LockNames, Refusal, Reply, SessionId, TtlMs, WaitMs,
};
use service_kit::faults::Rule;
use tempfile::TempDir;
use testkit::{eventually, free_ports};
use uuid::Uuid;

use crate::service::{FeedEvent, Role};
use crate::{LockService, Member, Node, NodeConfig, Secret, ServiceError};

/// Longer than anything here takes on a loaded machine.
const SOON: Duration = Duration::from_secs(20);
const SNAPSHOT_EVERY: u64 = 40;

/// A cluster whose members can be stopped and started one by one; their disks stay.
struct Cluster {
    /// The founders, and then whoever was taken in later.
    members: Vec<Member>,
    founders: usize,
    /// Whether a majority of them may not found the cluster.
    wants_all: bool,
    dirs: Vec<TempDir>,
    nodes: Vec<Option<Node>>,
    secret: Option<Secret>,
}

impl Cluster {
    async fn start(size: usize) -> Self {
        let mut cluster = Self::stopped(size);
        for at in 0..size {
            cluster.launch(at).await;
        }
        cluster
    }

    fn stopped(size: usize) -> Self {
        let ports = free_ports(2 * size);
        let local = |port: u16| format!("127.0.0.1:{port}");
        let member = |at: usize| Member {
            id: at as u64 + 1,
            peer_addr: local(ports[2 * at]),
            client_addr: local(ports[2 * at + 1]),
        };
        Self {
            members: (0..size).map(member).collect(),
            founders: size,
            wants_all: false,
            dirs: (0..size).map(|_| tempfile::tempdir().unwrap()).collect(),
            nodes: (0..size).map(|_| None).collect(),
            secret: Secret::new("only the members know"),
        }
    }

    fn config(&self, at: usize) -> NodeConfig {
        let config = NodeConfig::member(self.members[at].id, &self.members, self.dirs[at].path());
        NodeConfig {
            bootstrap: at < self.founders,
            bootstrap_all: self.wants_all,
            peer_secret: self.secret.clone(),
            enable_faults: true,
            ..config.unwrap()
        }
    }

    async fn launch(&mut self, at: usize) {
        self.nodes[at] = Some(Node::start_with(self.config(at), SNAPSHOT_EVERY).await.unwrap());
    }

    /// Another member, under a new id and on an empty disk, which is taken in as a voter.
    async fn take_in(&mut self) -> usize {
        let at = self.add_learner().await;
        self.lead().await.promote(at as u64 + 1).await.unwrap();
        at
    }

    /// The same, as a learner.
    async fn add_learner(&mut self) -> usize {
        let at = self.members.len();
        let ports = free_ports(2);
        self.members.push(Member {
            id: at as u64 + 1,
            peer_addr: format!("127.0.0.1:{}", ports[0]),
            client_addr: format!("127.0.0.1:{}", ports[1]),
        });
        self.dirs.push(tempfile::tempdir().unwrap());
        self.nodes.push(None);
        self.launch(at).await;
        let service = self.lead().await;
        service.add_learner(self.members[at].clone()).await.unwrap();
        at
    }

    async fn stop(&mut self, at: usize) {
        self.nodes[at].take().unwrap().shutdown().await;
    }

    fn node(&self, at: usize) -> &Node {
        self.nodes[at].as_ref().unwrap()
    }

    fn service(&self, at: usize) -> &LockService {
        self.node(at).service()
    }

    /// Cuts all cables of a member.
    fn isolate(&self, at: usize) {
        for point in self.links(at) {
            self.node(at)
                .faults()
                .switches()
                .arm(&point, always("error=503"))
                .unwrap();
        }
    }

    fn mend(&self, at: usize) {
        for point in self.links(at) {
            self.node(at).faults().switches().disarm(&point).unwrap();
        }
    }

    fn links(&self, at: usize) -> impl Iterator<Item = String> {
        let me = self.members[at].id;
        self.members[..self.founders]
            .iter()
            .filter(move |member| member.id != me)
            .map(|member| format!("raft.peer/{}", member.id))
    }

    fn running(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .filter_map(|(at, node)| Some((at, node.as_ref()?)))
    }

    /// Waits for a node that leads and can commit.
    async fn leader(&self) -> usize {
        eventually(SOON, "a leader", async || {
            for (at, node) in self.running() {
                if node.service().status().role == Role::Leader
                    && node.service().propose(Command::Expire).await.is_ok()
                {
                    return Some(at);
                }
            }
            None
        })
        .await
    }

    async fn lead(&self) -> &LockService {
        self.node(self.leader().await).service()
    }

    /// Waits until all running nodes have applied as much as the leader has now.
    async fn in_step(&self) {
        let target = self.lead().await.status().applied;
        eventually(SOON, "every node to catch up", async || {
            self.running()
                .all(|(_, node)| node.service().status().applied >= target)
                .then_some(())
        })
        .await;
    }
}

fn names(names: &[&str]) -> LockNames {
    LockNames::new(
        names
            .iter()
            .map(|name| LockName::parse(name).unwrap())
            .collect::<Vec<_>>(),
    )
    .unwrap()
}

fn wait(ms: u64) -> WaitMs {
    WaitMs::new(ms).unwrap()
}

async fn open_session(service: &LockService, ttl_ms: u64) -> SessionId {
    let session_id = SessionId::new(Uuid::now_v7());
    let open = Command::OpenSession {
        session_id,
        ttl: TtlMs::new(ttl_ms).unwrap(),
        label: Label::parse("test").unwrap(),
    };
    let reply = service.propose(open).await.unwrap();
    assert!(
        matches!(reply, Reply::SessionOpened { created: true, .. }),
        "{reply:?}"
    );
    session_id
}

async fn acquire_now(service: &LockService, session_id: SessionId, id: u64, name: &str) -> AcquireAnswer {
    service
        .acquire(session_id, AcquireId::new(id), names(&[name]), WaitMs::ZERO)
        .await
        .unwrap()
        .unwrap()
}

fn token(answer: &AcquireAnswer) -> u64 {
    match answer {
        AcquireAnswer::Granted { fencing_token, .. } => fencing_token.get(),
        other => panic!("not granted: {other:?}"),
    }
}

/// A rule that always strikes.
fn always(effect: &str) -> Rule {
    Rule {
        effect: serde_json::from_value(effect.into()).unwrap(),
        percent: 100.try_into().unwrap(),
        seed: 0,
        scope: None,
    }
}
