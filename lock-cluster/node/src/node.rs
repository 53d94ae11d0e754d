//! (bodies follow)

use crate::config::NodeConfig;
use crate::faults::NodeFaults;
use crate::service::LockService;

/// A running member of the cluster.
pub struct Node {
    client_url: String,
    service: LockService,
    faults: NodeFaults,
}

impl Node {
    /// Binds both ports, opens the disk, joins the cluster and starts serving clients.
    pub async fn start(_config: NodeConfig) -> anyhow::Result<Self> {
        anyhow::bail!("bodies follow")
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

    /// Resolves when the node has stopped by itself (its disk failed, say), with the reason.
    pub async fn failed(&self) -> String {
        std::future::pending().await
    }

    /// Stops serving, closes the peers' connections and the disk.
    pub async fn shutdown(self) {}
}
