//! Locking with etcd's own lock service (`v3lockpb`): the server runs the recipe and answers when the lock is held.

use super::messages::{LockRequest, UnlockRequest};
use super::session::Session;

/// Waits for the lock; returns the key that stands for holding it.
pub(crate) async fn acquire(session: &Session, name: &str) -> anyhow::Result<Vec<u8>> {
    let request = LockRequest {
        name: name.into(),
        lease: session.lease(),
    };
    Ok(session.etcd().lock(request).await?.key)
}

/// Gives it back.
pub(crate) async fn release(session: &Session, key: Vec<u8>) -> anyhow::Result<()> {
    session.etcd().unlock(UnlockRequest { key }).await?;
    Ok(())
}
