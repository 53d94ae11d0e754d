//! What the peer port and the links to peers learn by the way about this node and about the others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::super::ids::DiskId;

/// Shared by all connections of a node.
pub(crate) struct Standing {
    /// When a leader last sent something; the node's start, before.
    heard: Mutex<Instant>,
    /// Somebody who leads, or did, has opened a connection for entries.
    called_on: AtomicBool,
    /// The disks that the log records. Links are made when a node begins to lead, and live longer than what they knew.
    recorded: Mutex<BTreeMap<u64, DiskId>>,
    /// The disks that peers have shown.
    seen: Mutex<BTreeMap<u64, DiskId>>,
    /// Why this node does not belong here and must stop.
    expelled: watch::Sender<Option<String>>,
}

impl Standing {
    pub(crate) fn new() -> Self {
        Self {
            heard: Mutex::new(Instant::now()),
            called_on: AtomicBool::new(false),
            recorded: Mutex::default(),
            seen: Mutex::default(),
            expelled: watch::Sender::new(None),
        }
    }

    pub(super) fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long no leader has sent anything.
    pub(crate) fn silence(&self) -> Duration {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    pub(super) fn call_on(&self) {
        self.called_on.store(true, Ordering::Relaxed);
    }

    pub(super) fn was_called_on(&self) -> bool {
        self.called_on.load(Ordering::Relaxed)
    }

    pub(super) fn record(&self, disks: BTreeMap<u64, DiskId>) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = disks;
    }

    pub(super) fn recorded(&self, peer: u64) -> Option<DiskId> {
        self.recorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&peer)
            .copied()
    }

    pub(super) fn see(&self, peer: u64, disk: DiskId) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(peer, disk);
    }

    /// Forgets which disk a peer has shown.
    pub(super) fn forget(&self, peer: u64) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&peer);
    }

    pub(super) fn seen(&self) -> BTreeMap<u64, DiskId> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn expel(&self, why: String) {
        self.expelled.send_if_modified(|expelled| {
            let first = expelled.is_none();
            if first {
                tracing::error!(why, "this node does not belong here");
                *expelled = Some(why);
            }
            first
        });
    }

    /// Resolves when this node must stop, with the reason.
    pub(crate) async fn expelled(&self) -> String {
        let mut expelled = self.expelled.subscribe();
        let why = expelled
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|why| why.clone());
        match why {
            Some(why) => why,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }
}
