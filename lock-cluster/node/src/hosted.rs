//! A member inside another program: started before the program's own work, stopped after it.

use anyhow::Context as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{Node, NodeConfig};

/// A member that this process hosts beside its own work (`--embed-lock-node`).
///
/// A member that cannot go on (its disk failed, say) takes the process with it, by letting the process's own
/// shutdown token fall: half a program that looks alive helps nobody. Its own ports are closed at once: what the program
/// still needs of locks while it drains, it finds at the other members.
#[derive(Debug)]
pub struct HostedNode {
    stop: CancellationToken,
    hosting: JoinHandle<()>,
}

impl HostedNode {
    /// Starts the member, if one is configured. `shutdown` is the program's token: it is *not* what stops the
    /// member (the program still needs its locks while it drains), but what falls when the member fails.
    ///
    /// # Errors
    /// An address or the disk cannot be had.
    pub async fn start(
        config: Option<NodeConfig>,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let Some(config) = config else {
            return Ok(None);
        };
        let node = Node::start(config)
            .await
            .context("the lock node in this process did not start")?;
        let stop = CancellationToken::new();
        let (stopped, shutdown) = (stop.clone(), shutdown.clone());
        let hosting = tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                reason = node.failed() => {
                    tracing::error!(reason, "the lock node in this process failed");
                    shutdown.cancel();
                }
            }
            node.shutdown().await;
        });
        Ok(Some(Self { stop, hosting }))
    }

    /// Stops the member. First in, last out: to be called after everything in the process that holds locks.
    pub async fn leave(self) {
        self.stop.cancel();
        if let Err(error) = self.hosting.await {
            tracing::error!(%error, "the lock node did not stop well");
        }
    }
}
