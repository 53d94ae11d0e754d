//! Three nodes in one process.

use std::time::Duration;

use futures::future::join_all;
use lock_client::wire::AddMember;
use lock_client::{ClientConfig, ClusterClient, LockClient};
use lock_node::{Member, Node, NodeConfig, Secret};
use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;
use testkit::{eventually, free_ports};

use crate::api::{Api, Session};

/// Long enough for an election among busy neighbours.
pub(crate) const SOON: Duration = Duration::from_secs(15);
/// What administrators of a test cluster say.
pub(crate) const ADMIN_TOKEN: &str = "let me in";

/// A cluster whose nodes can be shut down and started again.
pub(crate) struct Cluster {
    members: Vec<Member>,
    /// So many of the members form the cluster; the others have an address, and may join later.
    founders: usize,
    dirs: TempDir,
    nodes: Vec<Option<Node>>,
    pub(crate) api: Api,
}

impl Cluster {
    pub(crate) async fn start(size: usize) -> Self {
        Self::start_with_guests(size, 0).await
    }

    /// The same with so many nodes beside it that can [`Cluster::join`].
    pub(crate) async fn start_with_guests(founders: usize, guests: usize) -> Self {
        let size = founders + guests;
        let members = members(size);
        let dirs = tempfile::tempdir().expect("a temporary directory");
        let urls = members.iter().map(Member::client_url).collect();
        let mut cluster = Self {
            members,
            founders,
            dirs,
            nodes: (0..size).map(|_| None).collect(),
            api: Api::new(urls),
        };
        cluster.start_all().await;
        cluster
    }

    /// Starts every founder that does not run, and waits for a leader.
    pub(crate) async fn start_all(&mut self) {
        let stopped: Vec<usize> = (0..self.founders)
            .filter(|at| self.nodes[*at].is_none())
            .collect();
        let started = join_all(stopped.iter().map(|at| Node::start(self.config(*at)))).await;
        for (at, node) in stopped.into_iter().zip(started) {
            self.nodes[at] = Some(node.expect("a node starts"));
        }
        self.leader().await;
    }

    /// Starts one node, which may or may not belong to the cluster.
    pub(crate) async fn launch(&mut self, at: usize) {
        self.nodes[at] = Some(Node::start(self.config(at)).await.expect("a node starts"));
    }

    /// Starts a guest on an empty disk and takes it in.
    pub(crate) async fn join(&mut self, at: usize, voter: bool) {
        self.launch(at).await;
        let Member {
            id,
            peer_addr,
            client_addr,
        } = self.members[at].clone();
        let member = AddMember {
            id,
            peer_addr,
            client_addr,
            voter,
        };
        self.admin().add_member(&member).await.expect("it is taken in");
    }

    /// Empties the disk of a node that does not run.
    pub(crate) fn lose_disk(&self, at: usize) {
        assert!(self.nodes[at].is_none(), "it runs");
        let dir = self.dirs.path().join(self.members[at].id.to_string());
        std::fs::remove_dir_all(dir).expect("it had one");
    }

    /// Removes a member and shuts it down.
    pub(crate) async fn remove(&mut self, at: usize) {
        let id = self.members[at].id;
        self.admin().remove_member(id).await.expect("it is removed");
        if self.nodes[at].is_some() {
            self.stop(at).await;
        }
    }

    /// Who votes, as the leader knows it.
    pub(crate) async fn voters(&self) -> Vec<u64> {
        let leader = self.leader().await;
        let members = self.node(leader).service().status().members;
        let voters = members.iter().filter(|member| member.voter);
        voters.map(|member| member.id).collect()
    }

    pub(crate) fn node(&self, at: usize) -> &Node {
        self.nodes[at].as_ref().expect("it runs")
    }

    pub(crate) async fn stop(&mut self, at: usize) {
        let node = self.nodes[at].take().expect("it runs");
        node.shutdown().await;
    }

    pub(crate) async fn stop_all(&mut self) {
        let nodes: Vec<Node> = self.nodes.iter_mut().filter_map(Option::take).collect();
        join_all(nodes.into_iter().map(Node::shutdown)).await;
    }

    /// Which node leads, once all that run agree.
    pub(crate) async fn leader(&self) -> usize {
        let id = eventually(SOON, "one leader that all nodes know", async || {
            let known: Option<Vec<u64>> = self
                .nodes
                .iter()
                .flatten()
                .map(|node| node.service().status().leader.map(|leader| leader.id))
                .collect();
            let known = known?;
            let first = *known.first()?;
            let runs = self.nodes[usize::try_from(first - 1).ok()?].is_some();
            (runs && known.iter().all(|id| *id == first)).then_some(first)
        })
        .await;
        usize::try_from(id).expect("a small id") - 1
    }

    pub(crate) async fn follower(&self) -> usize {
        let leader = self.leader().await;
        (0..self.nodes.len())
            .find(|at| *at != leader && self.nodes[*at].is_some())
            .expect("more than one node")
    }

    pub(crate) fn url(&self, at: usize) -> String {
        self.members[at].client_url()
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.members.iter().map(Member::client_url).collect()
    }

    /// A session over plain HTTP, as curl would have it.
    pub(crate) async fn session(&self) -> Session {
        self.session_with(Duration::from_secs(60)).await
    }

    pub(crate) async fn session_with(&self, ttl: Duration) -> Session {
        self.api.open_session(ttl).await
    }

    pub(crate) async fn client(&self, label: &str, ttl: Duration) -> LockClient {
        let config = ClientConfig {
            urls: self.urls(),
            ttl,
            label: label.to_owned(),
            ..ClientConfig::default()
        };
        LockClient::connect(config).await.expect("a client")
    }

    pub(crate) fn admin(&self) -> ClusterClient {
        let mut config = ClientConfig::new(self.urls());
        config.token = Some(ADMIN_TOKEN.to_owned());
        ClusterClient::new(config).expect("a client")
    }

    /// Arms a fault point of a node.
    pub(crate) async fn arm(&self, at: usize, point: &str, effect: Value) {
        let url = format!("{}/v1/faults/{point}", self.url(at));
        let reply = self.api.once(Method::PUT, &url, Some(&effect)).await;
        reply.expect("the node answers").expect(200);
    }

    /// Disarms it.
    pub(crate) async fn disarm(&self, at: usize, point: &str) {
        let url = format!("{}/v1/faults/{point}", self.url(at));
        let reply = self.api.once(Method::DELETE, &url, None).await;
        reply.expect("the node answers").expect(204);
    }

    /// What the leader counts: sessions, locks, waiters.
    pub(crate) async fn counts(&self) -> (usize, usize, usize) {
        let leader = self.leader().await;
        let node = self.nodes[leader].as_ref().expect("the leader runs");
        let counts = node.service().status().counts;
        (counts.sessions, counts.locks, counts.waiters)
    }

    /// Waits until nothing is held or waited for.
    pub(crate) async fn nothing_is_left(&self) {
        eventually(SOON, "no lock and no waiter", async || {
            let (_, locks, waiters) = self.counts().await;
            ((locks, waiters) == (0, 0)).then_some(())
        })
        .await;
    }

    fn config(&self, at: usize) -> NodeConfig {
        let id = self.members[at].id;
        let data_dir = self.dirs.path().join(id.to_string());
        let config = NodeConfig::member(id, &self.known_to(at), data_dir);
        NodeConfig {
            bootstrap: at < self.founders,
            peer_secret: Secret::new("a secret of peers"),
            admin_token: Secret::new(ADMIN_TOKEN),
            enable_faults: true,
            ..config.expect("loopback and ports")
        }
    }
}

impl Cluster {
    /// A guest knows the founders and itself, and is no founder.
    fn known_to(&self, at: usize) -> Vec<Member> {
        let mut known = self.members[..self.founders].to_vec();
        if at >= self.founders {
            known.push(self.members[at].clone());
        }
        known
    }
}

/// Members with free ports, ids from 1.
pub(crate) fn members(size: usize) -> Vec<Member> {
    let ports = free_ports(2 * size);
    let member = |(pair, id): (&[u16], u64)| Member {
        id,
        peer_addr: format!("127.0.0.1:{}", pair[0]),
        client_addr: format!("127.0.0.1:{}", pair[1]),
    };
    ports.chunks(2).zip(1..).map(member).collect()
}
