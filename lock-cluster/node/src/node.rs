//! A running member: the ports, the disk, the consensus, the service and the HTTP server, tied together.
//!
//! ```no_run
//! # async fn embed(config: lock_node::NodeConfig) -> anyhow::Result<()> {
//! let node = lock_node::Node::start(config).await?;
//! println!("clients: {}", node.client_url());
//! // … until the program ends, or `node.failed()` resolves …
//! node.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! Several nodes may run in one process; each has its own directory. Starting a node on the directory of one that was
//! killed is how it comes back: what it promised and what it acknowledged is there.

use std::sync::Arc;

use anyhow::Context as _;
use futures::future::BoxFuture;
use service_kit::Running;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;
use crate::faults::NodeFaults;
use crate::http;
use crate::raft::log::LogStore;
use crate::raft::log::disk::DiskLog;
use crate::raft::peer::{self, Belonging, Key, Me, PeerNetwork, PeerTls, Standing, Transport};
use crate::raft::snapshot::SnapshotDir;
use crate::raft::{Consensus, Identity, SNAPSHOT_EVERY, StateMachine, nodes};
use crate::service::{ClusterClock, LockService, Replica};

/// A running member of the cluster.
pub struct Node {
    client_url: String,
    service: LockService,
    consensus: Consensus<crate::Tokio>,
    faults: NodeFaults,
    closing: CancellationToken,
    api: http::Api,
    clients: Running,
    peers: JoinHandle<()>,
    standing: Arc<Standing>,
    belonging: JoinHandle<()>,
}

impl Node {
    /// Binds both ports, opens the disk, joins the cluster and starts serving clients.
    ///
    /// # Errors
    /// The configuration is refused, a port or the directory is taken, or what is on the disk does not check out.
    pub fn start(config: NodeConfig) -> BoxFuture<'static, anyhow::Result<Self>> {
        // A trait object, so that this crate compiles what is behind it, and not every program that embeds a node.
        Box::pin(Self::start_with(config, SNAPSHOT_EVERY))
    }

    /// The same, with a snapshot after so many entries.
    pub(crate) async fn start_with(mut config: NodeConfig, snapshot_every: u64) -> anyhow::Result<Self> {
        config.validate()?;
        let transport = transport(&config)?;
        let client_port = service_kit::bind(config.client_addr)?;
        let peer_port = service_kit::bind(config.peer_addr)?;
        name_chosen_ports(&mut config, &client_port, &peer_port)?;
        let client_url = config.me().context("validated above")?.client_url();

        let faults = NodeFaults::new(config.enable_faults, &config.members);
        let dir = &config.data_dir;
        let in_dir = || format!("opening the data directory {}", dir.display());
        let identity = Arc::new(Identity::of_directory(dir, config.id).with_context(in_dir)?);
        let log = LogStore::new(Box::new(
            DiskLog::open(&dir.join("log"), faults.clone()).with_context(in_dir)?,
        ));
        identity.log_begun().with_context(in_dir)?;
        let snapshots = Arc::new(SnapshotDir::open(&dir.join("snapshots")).with_context(in_dir)?);

        let replica = Arc::new(Replica::new());
        let clock = Arc::new(ClusterClock::new());
        let machine = StateMachine::new(replica.clone(), clock.clone(), snapshots);
        let me = Me {
            key: Key::new(config.peer_secret.as_ref()),
            identity: identity.clone(),
        };
        let standing = Arc::new(Standing::new());
        let network = PeerNetwork::new(
            me.clone(),
            standing.clone(),
            transport.clone(),
            faults.clone(),
            nodes(&config.members),
        );
        let consensus = Consensus::start(
            config.id,
            &config.members,
            log,
            machine,
            network.clone(),
            snapshot_every,
        )
        .await?
        .hearing({
            let standing = standing.clone();
            move || standing.silence()
        });
        consensus.looked_at_its_log().await?;
        standing.look_into(consensus.raft().metrics());
        if let Some(cluster) = consensus.cluster() {
            // Written now if a founder crashed before it was; refused if the log is another cluster's.
            identity.join(cluster).with_context(in_dir)?;
        }

        let closing = CancellationToken::new();
        let peers = tokio::spawn(peer::serve(
            peer_port,
            me,
            standing.clone(),
            transport,
            consensus.clone(),
            faults.clone(),
            closing.clone(),
        ));
        let belonging = Belonging {
            network,
            consensus: consensus.clone(),
            standing: standing.clone(),
            bootstrap: config.bootstrap,
            bootstrap_all: config.bootstrap_all,
        };
        let belonging = tokio::spawn(belonging.run(closing.clone()));
        let service = LockService::start(consensus.clone(), replica, clock, faults.clone());
        let tokens = http::Tokens {
            client: config.client_token,
            admin: config.admin_token,
        };
        let api = http::Api::new(service.clone(), tokens, closing.clone());
        let router = http::router(api.clone(), faults.switches().clone());
        let clients = service_kit::serve(client_port, router, closing.clone());
        tracing::info!(node.id = config.id, client_url, "lock node started");
        Ok(Self {
            client_url,
            service,
            consensus,
            faults,
            closing,
            api,
            clients,
            peers,
            standing,
            belonging,
        })
    }

    /// The base URL under which this node serves clients.
    pub fn client_url(&self) -> &str {
        &self.client_url
    }

    /// The service, for callers inside the process.
    pub fn service(&self) -> &LockService {
        &self.service
    }

    /// The fault points.
    pub fn faults(&self) -> &NodeFaults {
        &self.faults
    }

    /// Resolves when the node has stopped by itself or must not go on, with the reason: its disk failed, say, or it is
    /// not the disk that the cluster knows this member by.
    pub async fn failed(&self) -> String {
        tokio::select! {
            why = self.consensus.stopped() => why,
            why = self.standing.expelled() => why,
        }
    }

    /// Stops serving, closes the peers' connections and the disk.
    pub async fn shutdown(self) {
        // Waiting requests first: they are told, and the server then has nothing left to wait for.
        self.service.stop();
        self.closing.cancel();
        if let Err(error) = self.clients.join().await {
            tracing::warn!(%error, "the client port did not close cleanly");
        }
        self.api.pipes_closed().await;
        if let Err(error) = self.peers.await {
            tracing::warn!(%error, "the peer port did not close cleanly");
        }
        if let Err(error) = self.belonging.await {
            tracing::warn!(%error, "the task that asks the peers did not end cleanly");
        }
        self.consensus.shutdown().await;
    }
}

/// What the members' connections are made with.
fn transport(config: &NodeConfig) -> anyhow::Result<Transport> {
    let Some(files) = &config.peer_tls else {
        return Ok(Transport::Plain);
    };
    let tls = PeerTls::load(files).context("TLS between the members")?;
    tls.check_own(config.id).context("TLS between the members")?;
    Ok(Transport::Tls(tls))
}

/// Where the system was asked for a port, the node's own entry among the members learns which it is.
fn name_chosen_ports(
    config: &mut NodeConfig,
    client_port: &TcpListener,
    peer_port: &TcpListener,
) -> anyhow::Result<()> {
    let (client_addr, peer_addr) = (client_port.local_addr()?, peer_port.local_addr()?);
    let id = config.id;
    let me = config
        .members
        .iter_mut()
        .find(|member| member.id == id)
        .context("validated before")?;
    if config.client_addr.port() == 0 {
        me.client_addr = client_addr.to_string();
    }
    if config.peer_addr.port() == 0 {
        me.peer_addr = peer_addr.to_string();
    }
    Ok(())
}
