//! Why one end of a connection does not want the other.

use std::io;

use serde::{Deserialize, Serialize};

use super::super::ids::ClusterId;

/// Why a peer was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(super) enum Refusal {
    #[error("it speaks another version of the peer protocol")]
    Version,
    #[error("it does not know the cluster's secret")]
    Secret,
    #[error("it looks for another member")]
    OtherMember,
    #[error("its certificate names another member than it says it is")]
    Certificate,
    #[error("it belongs to cluster {caller}, not to {called}: the addresses of two clusters are mixed up")]
    OtherCluster {
        /// Of the end that opened the connection.
        caller: ClusterId,
        /// Of the end that refused.
        called: ClusterId,
    },
    #[error(
        "it has another disk than the log records for this member, so what it voted and acknowledged is lost. Remove \
         the member, and add it under a new id with an empty data directory"
    )]
    OtherDisk,
}

/// What an opening end is told when it is turned away.
#[derive(Debug, thiserror::Error)]
#[error("the peer refused this node: {0}")]
pub(super) struct TurnedAway(pub(super) Refusal);

/// Whether this node was turned away because its disk is not the one that belongs to its id.
pub(super) fn has_lost_its_disk(error: &io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<TurnedAway>());
    inner.is_some_and(|TurnedAway(why)| *why == Refusal::OtherDisk)
}
