//! A lease that is kept alive every third of its time to live, as etcd's Go package does.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::calls::Etcd;
use super::messages::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};

/// A lease and the task that keeps it alive. Dropped, it is left to expire.
#[derive(Debug)]
pub(crate) struct Session {
    etcd: Etcd,
    lease: i64,
    keeper: JoinHandle<anyhow::Result<()>>,
}

impl Session {
    /// Takes a lease and begins to keep it alive.
    pub(crate) async fn open(etcd: Etcd, ttl: Duration) -> anyhow::Result<Self> {
        let ttl_seconds = i64::try_from(ttl.as_secs())?;
        let granted = etcd.lease_grant(LeaseGrantRequest { ttl: ttl_seconds }).await?;
        ensure!(granted.error.is_empty(), "no lease: {}", granted.error);
        let keeper = tokio::spawn(keep_alive(etcd.clone(), granted.id, ttl));
        Ok(Self {
            etcd,
            lease: granted.id,
            keeper,
        })
    }

    pub(crate) fn etcd(&self) -> &Etcd {
        &self.etcd
    }

    pub(crate) fn lease(&self) -> i64 {
        self.lease
    }

    /// Gives the lease back, and with it everything that it holds.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.keeper.abort();
        self.etcd
            .lease_revoke(LeaseRevokeRequest { id: self.lease })
            .await?;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

async fn keep_alive(etcd: Etcd, lease: i64, ttl: Duration) -> anyhow::Result<()> {
    let request = LeaseKeepAliveRequest { id: lease };
    let (requests, mut answers) = etcd.lease_keep_alive(request).await?;
    loop {
        let answer = answers
            .message()
            .await?
            .context("the keep-alive stream has ended")?;
        ensure!(answer.ttl > 0, "the lease is gone");
        sleep(ttl / 3).await;
        requests.send(request).await?;
    }
}
