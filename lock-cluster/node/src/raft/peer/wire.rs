//! What is said on call and snapshot connections. Append connections carry the library's own requests and results,
//! one frame each; an empty frame is a sign of life.

use openraft::raft::{TransferLeaderRequest, VoteRequest, VoteResponse};
use serde::{Deserialize, Serialize};

use super::super::runtime::Tokio;
use super::super::types::{Cfg, Membership, Position, Vote};

pub(super) type C = Cfg<Tokio>;

/// Bytes of a snapshot's state in one frame.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// The largest state that is taken from a peer.
pub(super) const STATE_BYTES_MAX: u64 = 2 << 30;

/// A question on a call connection.
#[derive(Serialize, Deserialize)]
pub(super) enum Call {
    Vote(VoteRequest<C>),
    PreVote(VoteRequest<C>),
    TransferLeader(TransferLeaderRequest<C>),
    /// Where do I stand? With the position of the last membership that the asker knows.
    Standing(Option<Position>),
}

/// Its answer.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Vote(VoteResponse<C>),
    LeaderTransferred,
    Standing(StandingAnswer),
    /// The peer's consensus has stopped, or did not want to.
    Failed(String),
}

/// What a peer knows about whoever asks.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct StandingAnswer {
    /// Whether the one who answers belongs to a cluster.
    pub(super) formed: bool,
    /// The committed membership without the asker, if that is newer than what the asker knows.
    pub(super) removed: Option<Position>,
}

/// The first frame on a snapshot connection; the state follows in frames of up to [`CHUNK_BYTES`].
#[derive(Serialize, Deserialize)]
pub(super) struct SnapshotHeader {
    /// The leader's.
    pub(super) vote: Vote,
    pub(super) last: Option<Position>,
    pub(super) membership: Membership,
    pub(super) state_bytes: u64,
    pub(super) state_crc: u32,
}

/// The answer, when all of it was installed or refused.
#[derive(Serialize, Deserialize)]
pub(super) enum SnapshotAnswer {
    Done(Vote),
    Failed(String),
}
