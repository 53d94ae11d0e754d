//! A member of the lock cluster in this process (`--embed-lock-node`).

use anyhow::Context as _;
use lock_node::{Node, NodeConfig};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A member that is being hosted.
pub(crate) struct Member {
    stop: CancellationToken,
    hosting: JoinHandle<()>,
}

impl Member {
    /// Starts a member. One that cannot go on takes the process with it, by letting `shutdown` fall: half a
    /// program that looks alive helps nobody.
    pub(crate) async fn host(config: NodeConfig, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let node = Node::start(config)
            .await
            .context("the lock node in this process did not start")?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let hosting = tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                reason = node.failed() => {
                    tracing::error!(reason, "the lock node in this process failed");
                    shutdown.cancel();
                    stopped.cancelled().await;
                }
            }
            node.shutdown().await;
        });
        Ok(Self { stop, hosting })
    }

    /// Stops it, after everything in this process that may need it.
    pub(crate) async fn leave(self) {
        self.stop.cancel();
        if let Err(error) = self.hosting.await {
            tracing::error!(%error, "the lock node did not stop well");
        }
    }
}
