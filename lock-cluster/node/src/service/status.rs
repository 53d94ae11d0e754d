//! What a node tells about itself: for `GET /v1/cluster`, readiness and the metrics.

use std::collections::BTreeMap;

use lock_core::{ClusterTime, Counts};

use super::Leader;
use crate::raft::ClusterId;

/// What a node currently is in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Receives the log, does not vote.
    Learner,
    /// Receives the log and votes.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Orders the log.
    Leader,
    /// Does not belong to the cluster any more.
    Removed,
    /// Has stopped, because of a shutdown or because its disk failed.
    Stopped,
}

/// One member as recorded in the replicated membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub id: u64,
    /// `host:port` for peers.
    pub peer_addr: String,
    /// Base URL for clients.
    pub client_url: String,
    /// Whether it votes (a learner does not).
    pub voter: bool,
    /// Whether the log records its disk, so that it cannot come back on another one.
    pub recorded: bool,
    /// On the leader: the last log index known to be on this member's disk.
    pub matched: Option<u64>,
    /// On the leader: how long ago this member last answered it.
    pub silent_ms: Option<u64>,
}

/// A moment's view of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// This node.
    pub id: u64,
    /// The cluster it is of; none until it founds one or has its first entry from one.
    pub cluster: Option<ClusterId>,
    /// What it is.
    pub role: Role,
    /// The highest term it has seen.
    pub term: u64,
    /// Who leads, if known.
    pub leader: Option<Leader>,
    /// Index of the last entry in its log.
    pub last_log: Option<u64>,
    /// Index up to which it knows entries to be committed.
    pub committed: Option<u64>,
    /// Index of the last entry it has applied.
    pub applied: Option<u64>,
    /// Index of the last entry inside its snapshot.
    pub snapshot: Option<u64>,
    /// The members, in order of their ids.
    pub members: Vec<MemberStatus>,
    /// Whether a membership change is half-way: until it is done, old and new majorities both have to agree.
    pub changing: bool,
    /// On the leader: for each other member, how many entries it is behind.
    pub lag: BTreeMap<u64, u64>,
    /// Cluster time as of the last applied command.
    pub cluster_time: ClusterTime,
    /// What the replicated state contains.
    pub counts: Counts,
    /// Requests of this node that wait for a grant.
    pub waiting_here: usize,
    /// Commands of this node that wait to be proposed.
    pub queued_here: usize,
}
