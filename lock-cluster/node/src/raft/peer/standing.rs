//! What the peer port and the links to peers learn by the way about this node and about the others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use openraft::RaftMetrics;
use openraft::async_runtime::WatchReceiver;
use openraft::type_config::alias::WatchReceiverOf;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::ids::DiskId;
use super::handshake::Recorded;
use super::wire::C;

/// The library's own report of what is in the log.
type Metrics = WatchReceiverOf<C, RaftMetrics<C>>;

/// Shared by all connections of a node.
pub(crate) struct Standing {
    /// When a leader last sent something; the node's start, before.
    heard: Mutex<Instant>,
    /// Somebody who leads, or did, has opened a connection for entries.
    called_on: AtomicBool,
    /// What the log says now. Links are made when a node begins to lead, and live longer than what they knew.
    log: OnceLock<Metrics>,
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
            log: OnceLock::new(),
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

    /// From now on it knows what the log says. That comes later than the network: the library is given that first.
    pub(crate) fn look_into(&self, log: Metrics) {
        // The first is as good as any: there is one log.
        let _ = self.log.set(log);
    }

    pub(super) fn recorded(&self, peer: u64) -> Recorded {
        let Some(log) = self.log.get() else {
            return Recorded::default();
        };
        let metrics = log.borrow_watched();
        let effective = &metrics.membership_config;
        Recorded {
            disk: effective.membership().get_node(&peer).and_then(|node| node.disk),
            as_of: *effective.log_id(),
        }
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
