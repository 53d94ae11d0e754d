//! The JSON of the client port. What comes in is made of `lock-core`'s types, so that a value which was parsed is
//! a value within its bounds; what goes out is plain.

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use lock_core::{
    AcquireId, FencingToken, HolderView, Label, LockNames, LockView, SessionId, TtlMs, WaitMs, WaiterView,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use service_kit::{ApiJson, Problem};
use utoipa::ToSchema;

use crate::service::{MemberStatus, NodeStatus, Role};

/// Opens a session.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OpenSession {
    /// How long the session lives after each keep-alive.
    #[schema(value_type = u64, minimum = 500, maximum = 300_000, example = 5000)]
    pub(crate) ttl_ms: TtlMs,
    /// Who this is, for people; at most 128 bytes.
    #[serde(default)]
    #[schema(value_type = String, example = "inventory-1")]
    pub(crate) label: Label,
}

/// An open session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionBody {
    /// The id the client chose.
    #[schema(value_type = uuid::Uuid)]
    pub(crate) session_id: SessionId,
    /// How long it lives after each keep-alive: what the first open said.
    #[schema(value_type = u64, example = 5000)]
    pub(crate) ttl_ms: TtlMs,
}

/// Keeps a session alive.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct KeepAlive {
    /// The client is done with this acquire id and all lower ones: their answers may be forgotten.
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    pub(crate) acknowledged: Option<AcquireId>,
}

/// A session that was kept alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AliveBody {
    /// How long it lives from now.
    #[schema(value_type = u64, example = 5000)]
    pub(crate) ttl_ms: TtlMs,
    /// Acquisitions that an administrator broke and that are not released yet.
    #[schema(value_type = Vec<u64>)]
    pub(crate) broken: Vec<AcquireId>,
}

/// Asks for locks.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Acquire {
    /// The number of this attempt; the client increases it with each attempt and repeats it with each retry.
    #[schema(value_type = u64, example = 1)]
    pub(crate) acquire_id: AcquireId,
    /// What to hold, together or not at all; each name is 1 to 256 bytes, taken literally.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 16)]
    pub(crate) names: LockNames,
    /// How long to wait for them; 0: not at all.
    #[schema(value_type = u64, minimum = 0, maximum = 60_000, example = 30_000)]
    pub(crate) wait_ms: WaitMs,
}

/// Locks that are held.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantedBody {
    /// The attempt that was granted.
    #[schema(value_type = u64)]
    pub(crate) acquire_id: AcquireId,
    /// Higher than that of every grant before it in this cluster.
    #[schema(value_type = u64)]
    pub(crate) fencing_token: FencingToken,
    /// What is held.
    #[schema(value_type = Vec<String>)]
    pub(crate) names: LockNames,
}

/// Breaks a lock.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Break {
    /// Only the grant with this token is broken.
    #[schema(value_type = u64)]
    pub(crate) fencing_token: FencingToken,
}

/// A lock that was broken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BrokenBody {
    /// Who held it.
    #[schema(value_type = uuid::Uuid)]
    pub(crate) session_id: SessionId,
    /// By which attempt.
    #[schema(value_type = u64)]
    pub(crate) acquire_id: AcquireId,
    /// Everything they lost: what was granted together is broken together.
    #[schema(value_type = Vec<String>)]
    pub(crate) names: LockNames,
}

/// Locks that are held or waited for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LocksBody {
    /// In the order of their names.
    pub(crate) locks: Vec<LockBody>,
}

/// One lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockBody {
    /// Its name.
    pub(crate) name: String,
    /// Who holds it; null if nobody does.
    pub(crate) holder: Option<HolderBody>,
    /// Who waits, the next one first. At most 100, and at most 10 where a `compacted` event carries the state.
    pub(crate) waiters: Vec<WaiterBody>,
    /// How many wait altogether.
    pub(crate) waiters_total: usize,
}

/// Who holds a lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HolderBody {
    /// The session.
    #[schema(value_type = uuid::Uuid)]
    session_id: SessionId,
    /// What the session calls itself.
    #[schema(value_type = String)]
    label: Label,
    /// The attempt that was granted.
    #[schema(value_type = u64)]
    acquire_id: AcquireId,
    /// The token of the grant.
    #[schema(value_type = u64)]
    fencing_token: FencingToken,
    /// For how long, in cluster time.
    held_ms: u64,
}

/// Who waits for a lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WaiterBody {
    /// The session.
    #[schema(value_type = uuid::Uuid)]
    session_id: SessionId,
    /// What the session calls itself.
    #[schema(value_type = String)]
    label: Label,
    /// The attempt that waits.
    #[schema(value_type = u64)]
    acquire_id: AcquireId,
}

/// One node's view of the cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterBody {
    /// The node that answers.
    id: u64,
    /// The cluster it is of, drawn when that was founded (a UUID); `null` until this node has something of its log.
    cluster_id: Option<String>,
    /// `leader`, `follower`, `candidate`, `learner`, `removed` (it does not belong to the cluster any more) or `stopped`.
    role: &'static str,
    /// The Raft term it is in.
    term: u64,
    /// Who leads, as far as this node knows.
    leader: Option<u64>,
    /// Index of the last entry in its log.
    last_log_index: Option<u64>,
    /// Index up to which it knows entries to be committed.
    committed_index: Option<u64>,
    /// Index of the last entry it has applied.
    applied_index: Option<u64>,
    /// Index of the last entry inside its snapshot.
    snapshot_index: Option<u64>,
    /// Everybody who belongs to the cluster.
    members: Vec<MemberBody>,
    /// Whether a membership change is half-way.
    changing_members: bool,
    /// How far the others are; empty unless this node leads.
    replication: Vec<ReplicationBody>,
    /// Sessions alive.
    sessions: usize,
    /// Names held or waited for.
    locks: usize,
    /// Acquisitions that hold.
    holders: usize,
    /// Acquisitions that wait.
    waiters: usize,
    /// Cluster time as of the last applied command, in ms since the cluster began.
    cluster_time_ms: u64,
}

/// A member of the cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberBody {
    /// Its id.
    id: u64,
    /// `host:port` where the other members reach it.
    peer_addr: String,
    /// Base URL where clients reach it.
    client_url: String,
    /// Whether it votes; a learner does not.
    voter: bool,
}

/// How far a follower is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplicationBody {
    /// The follower.
    id: u64,
    /// The last log index known to be on its disk.
    matched_index: Option<u64>,
    /// Entries it is behind.
    lag: Option<u64>,
    /// How long ago it last answered the leader.
    silent_ms: Option<u64>,
}

/// Adds a member.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AddMember {
    /// Its id, which no other member has.
    pub(crate) id: u64,
    /// `host:port` where the other members reach it.
    #[schema(example = "lock-4:8604")]
    pub(crate) peer_addr: String,
    /// `host:port` where clients reach it.
    #[schema(example = "lock-4:8504")]
    pub(crate) client_addr: String,
    /// Whether it shall vote once it has caught up.
    #[serde(default)]
    pub(crate) voter: bool,
}

/// What a restore has brought.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RestoredBody {
    /// All later fencing tokens are higher than this.
    #[schema(value_type = u64)]
    pub(crate) token_floor: FencingToken,
    /// The highest token granted when the backup was made.
    #[schema(value_type = u64)]
    pub(crate) backup_last_token: FencingToken,
    /// Sessions in the backup; they are not brought back.
    pub(crate) sessions_dropped: u64,
    /// Names that were held or waited for in the backup; they are free.
    pub(crate) locks_dropped: u64,
}

impl From<LockView> for LockBody {
    fn from(lock: LockView) -> Self {
        Self {
            name: lock.name.to_string(),
            holder: lock.holder.map(HolderBody::from),
            waiters: lock.waiters.into_iter().map(WaiterBody::from).collect(),
            waiters_total: lock.waiters_total,
        }
    }
}

impl From<HolderView> for HolderBody {
    fn from(holder: HolderView) -> Self {
        let HolderView {
            session_id,
            label,
            acquire_id,
            fencing_token,
            held_ms,
        } = holder;
        Self {
            session_id,
            label,
            acquire_id,
            fencing_token,
            held_ms,
        }
    }
}

impl From<WaiterView> for WaiterBody {
    fn from(waiter: WaiterView) -> Self {
        let WaiterView {
            session_id,
            label,
            acquire_id,
            ..
        } = waiter;
        Self {
            session_id,
            label,
            acquire_id,
        }
    }
}

impl From<NodeStatus> for ClusterBody {
    fn from(status: NodeStatus) -> Self {
        let others = status.members.iter().filter(|member| member.id != status.id);
        let replication = match status.role {
            Role::Leader => others.map(|member| replication(&status, member)).collect(),
            _ => Vec::new(),
        };
        Self {
            id: status.id,
            cluster_id: status.cluster.map(|cluster| cluster.to_string()),
            role: role_name(status.role),
            term: status.term,
            leader: status.leader.as_ref().map(|leader| leader.id),
            last_log_index: status.last_log,
            committed_index: status.committed,
            applied_index: status.applied,
            snapshot_index: status.snapshot,
            replication,
            changing_members: status.changing,
            members: status.members.into_iter().map(MemberBody::from).collect(),
            sessions: status.counts.sessions,
            locks: status.counts.locks,
            holders: status.counts.holders,
            waiters: status.counts.waiters,
            cluster_time_ms: status.cluster_time.as_ms(),
        }
    }
}

impl From<MemberStatus> for MemberBody {
    fn from(member: MemberStatus) -> Self {
        let MemberStatus {
            id,
            peer_addr,
            client_url,
            voter,
            ..
        } = member;
        Self {
            id,
            peer_addr,
            client_url,
            voter,
        }
    }
}

fn replication(status: &NodeStatus, member: &MemberStatus) -> ReplicationBody {
    ReplicationBody {
        id: member.id,
        matched_index: member.matched,
        lag: status.lag.get(&member.id).copied(),
        silent_ms: member.silent_ms,
    }
}

pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Learner => "learner",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
        Role::Removed => "removed",
        Role::Stopped => "stopped",
    }
}

/// A JSON body that may be left out altogether, as `curl -X POST` does.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let ApiJson(value) = ApiJson::from_request(request, state).await?;
        Ok(Self(value))
    }
}
