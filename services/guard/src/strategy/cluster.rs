//! The lock cluster as two strategies share it: one client, and so one session, per process.

use std::time::Duration;

use lock_client::{ClientConfig, Grant, LockClient, LockError};
use ticketing_types::Strategy;
use tokio::sync::OnceCell;

use crate::GuardError;

/// The client of the lock cluster, made at its first use.
pub(crate) struct Cluster {
    config: ClientConfig,
    client: OnceCell<LockClient>,
}

impl Cluster {
    pub(crate) fn new(config: ClientConfig) -> Self {
        Self {
            config,
            client: OnceCell::new(),
        }
    }

    /// Holds all of `names`, on behalf of `strategy` (which only matters to the words of an error).
    pub(crate) async fn acquire(
        &self,
        strategy: Strategy,
        names: &[String],
        wait: Duration,
    ) -> Result<Grant, GuardError> {
        if self.config.urls.is_empty() {
            return Err(GuardError::StrategyUnavailable {
                strategy,
                reason: "no lock node is configured".to_owned(),
            });
        }
        let client = self
            .client
            .get_or_try_init(|| LockClient::connect(self.config.clone()))
            .await
            .map_err(refused)?;
        client.acquire(names, wait).await.map_err(refused)
    }

    pub(crate) async fn close(&self) {
        if let Some(client) = self.client.get() {
            client.close().await;
        }
    }
}

fn refused(error: LockError) -> GuardError {
    match error {
        LockError::Held | LockError::WaitTimeout => GuardError::WaitTimeout,
        LockError::Invalid { ref slug, .. } if slug == "unauthorized" => GuardError::LockRefused,
        // A refused request is our mistake (names, wait) or the cluster's limit (too many waiters); to the
        // caller both mean that this section could not be entered, and that nothing has happened.
        LockError::Unavailable { .. }
        | LockError::SessionLost
        | LockError::NotFound { .. }
        | LockError::Invalid { .. } => GuardError::LockUnavailable {
            detail: error.to_string(),
        },
    }
}
