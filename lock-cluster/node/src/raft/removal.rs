//! What a node knows of its own place among the members, and the disks and the cluster that the log records.
//!
//! A removed node has two ways to know: its own log says so (it was the leader that wrote it, or was sent the entry), or
//! somebody who has the entry told it (`peer/belonging.rs`). The second is believed for as long as its own log knows of
//! nothing newer; taken in again, it forgets it. Meanwhile it does not campaign: with the members it remembers it cannot
//! be elected, and would only keep asking.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use openraft::async_runtime::WatchReceiver;
use openraft::{ChangeMembers, RaftMetrics};

use super::consensus::Consensus;
use super::ids::{ClusterId, DiskId};
use super::runtime::ServiceRt;
use super::types::{Cfg, PeerNode, Position};

impl<R: ServiceRt> Consensus<R> {
    /// Somebody has told this node that the membership at this position is without it.
    pub(crate) fn learn_removal(&self, by: Position) {
        {
            let mut removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
            *removed = (*removed).max(Some(by));
        }
        self.heed_removal();
    }

    /// Campaigns, or not, as befits what this node knows by now.
    pub(crate) fn heed_removal(&self) {
        let removed = self.was_told_of_removal(&self.raft.metrics().borrow_watched());
        self.raft.runtime_config().elect(!removed);
    }

    /// Whether this node belonged to the cluster and does not any more.
    pub(super) fn is_removed(&self, metrics: &RaftMetrics<Cfg<R>>) -> bool {
        let committed = &metrics.committed_membership_config;
        let gone = committed.log_id().is_some() && committed.membership().get_node(&self.id).is_none();
        (gone
            && metrics
                .membership_config
                .membership()
                .get_node(&self.id)
                .is_none())
            || self.was_told_of_removal(metrics)
    }

    fn was_told_of_removal(&self, metrics: &RaftMetrics<Cfg<R>>) -> bool {
        let removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
        removed.is_some() && *removed > *metrics.membership_config.log_id()
    }

    /// The position of the newest membership in this node's log.
    pub(crate) fn membership_position(&self) -> Option<Position> {
        *self.raft.metrics().borrow_watched().membership_config.log_id()
    }

    /// Everybody else that this node knows: from its log, and from its start.
    pub(crate) fn peers(&self) -> BTreeMap<u64, PeerNode> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let logged = metrics.membership_config.membership().nodes();
        let mut peers = (*self.told).clone();
        peers.extend(logged.map(|(id, node)| (*id, node.clone())));
        peers.remove(&self.id);
        peers
    }

    /// Asks for votes now, instead of when an election timeout is over: nobody leads a cluster that was just founded.
    pub(crate) async fn stand_at_once(&self) {
        // An error means that the node has stopped, which is told elsewhere.
        let _ = self.raft.trigger().elect(true).await;
    }

    /// The cluster that this node's log is of; none while it is empty.
    pub(crate) fn cluster(&self) -> Option<ClusterId> {
        cluster_of(&self.raft.metrics().borrow_watched())
    }

    /// The disk that a peer must show which knows the membership at `as_of`. None if this node's record of it is out of
    /// date, by what the peer knows or because this node has no part in it any more: a removed one hears of no change.
    pub(crate) fn disk_due_from(&self, peer: u64, as_of: Option<Position>) -> Option<DiskId> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let effective = &metrics.membership_config;
        let outdated = as_of > *effective.log_id() || self.is_removed(&metrics);
        let node = effective.membership().get_node(&peer)?;
        node.disk.filter(|_| !outdated)
    }

    /// On a leader: has the log record the disk of every member that has none there yet and has shown one.
    pub(crate) async fn record_disks(&self, seen: &BTreeMap<u64, DiskId>) {
        if unrecorded(&self.raft.metrics().borrow_watched(), seen).is_empty() {
            return;
        }
        let recorded = self
            .change(|view| {
                // Looked at again, in turn: to name a member that was removed meanwhile would take it in again.
                let unrecorded = unrecorded(&view.metrics, seen);
                Ok((!unrecorded.is_empty()).then_some(ChangeMembers::SetNodes(unrecorded)))
            })
            .await;
        if let Err(error) = recorded {
            tracing::debug!(%error, "the disks of new members are not recorded yet");
        }
    }
}

/// The cluster that the log is of.
pub(super) fn cluster_of<R: ServiceRt>(metrics: &RaftMetrics<Cfg<R>>) -> Option<ClusterId> {
    let mut nodes = metrics.membership_config.membership().nodes();
    nodes.find_map(|(_, node)| node.cluster)
}

/// The members without a disk in the log, with the disk that they have shown.
fn unrecorded<R: ServiceRt>(
    metrics: &RaftMetrics<Cfg<R>>,
    seen: &BTreeMap<u64, DiskId>,
) -> BTreeMap<u64, PeerNode> {
    let nodes = metrics.membership_config.membership().nodes();
    let unrecorded = nodes.filter(|(_, node)| node.disk.is_none());
    let shown = unrecorded.filter_map(|(id, node)| {
        let disk = Some(*seen.get(id)?);
        Some((*id, PeerNode { disk, ..node.clone() }))
    });
    shown.collect()
}
