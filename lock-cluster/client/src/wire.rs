//! The JSON of the cluster's HTTP interface, as a client reads and writes it.
//!
//! Readers are lenient: an unknown field is ignored and a missing list is empty, so that an older client can talk
//! to a newer node.

use lock_pipe::{Leader, Problem};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `PUT /v1/sessions/{session_id}`.
#[derive(Debug, Serialize)]
pub struct OpenSession<'a> {
    /// Time to live, 500 to 300,000 ms.
    pub ttl_ms: u64,
    /// Who this is, for people.
    pub label: &'a str,
}

/// `POST /v1/sessions/{session_id}/keep-alive`.
#[derive(Debug, Serialize)]
pub struct KeepAlive {
    /// All attempts up to this one are finished: the cluster may forget them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<u64>,
}

/// The answer to both: how long the session lives from now.
#[derive(Debug, Deserialize)]
pub struct SessionAlive {
    /// Time to live, in ms.
    pub ttl_ms: u64,
    /// Attempts that an administrator took the locks from, and that are not released yet.
    #[serde(default)]
    pub broken: Vec<u64>,
}

/// `POST /v1/sessions/{session_id}/acquisitions`.
#[derive(Debug, Serialize)]
pub struct Acquire<'a> {
    /// The number of this attempt within the session.
    pub acquire_id: u64,
    /// What to hold, together or not at all: 1 to 16 names.
    pub names: Vec<&'a str>,
    /// How long to wait, at most 60,000 ms.
    pub wait_ms: u64,
}

/// The answer to a granted acquire.
#[derive(Debug, Deserialize)]
pub struct Granted {
    /// The number of the attempt.
    pub acquire_id: u64,
    /// Higher than that of every grant before it in the whole cluster.
    pub fencing_token: u64,
    /// What is held.
    pub names: Vec<String>,
}

/// `GET /v1/locks`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LockList {
    /// The locks that are held or waited for, by name.
    #[serde(default)]
    pub locks: Vec<Lock>,
}

/// The answer to `POST /v1/cluster/restore`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Restored {
    /// All later fencing tokens are higher than this.
    pub token_floor: u64,
    /// The highest token granted when the backup was made.
    pub backup_last_token: u64,
    /// Sessions in the backup, which are not brought back.
    pub sessions_dropped: u64,
    /// Names that were held or waited for in the backup, which are free.
    pub locks_dropped: u64,
}

/// One lock that is held or waited for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// Its name, literally.
    pub name: String,
    /// Who holds it, if anybody does.
    #[serde(default)]
    pub holder: Option<Holder>,
    /// Who waits, the next one first; of a long line only the head.
    #[serde(default)]
    pub waiters: Vec<Waiter>,
    /// How many wait altogether.
    #[serde(default)]
    pub waiters_total: usize,
}

/// Who holds a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The session.
    pub session_id: Uuid,
    /// What the session calls itself.
    #[serde(default)]
    pub label: String,
    /// The attempt of the session that was granted.
    pub acquire_id: u64,
    /// The token of the grant.
    pub fencing_token: u64,
    /// For how long, in cluster time.
    #[serde(default)]
    pub held_ms: u64,
}

/// Who waits for a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// The session.
    pub session_id: Uuid,
    /// What the session calls itself.
    #[serde(default)]
    pub label: String,
    /// The attempt of the session that waits.
    pub acquire_id: u64,
}

/// `GET /v1/cluster`: one node's view of the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The node that answers.
    pub id: u64,
    /// The cluster it is of; none while it is of no cluster yet.
    #[serde(default)]
    pub cluster_id: Option<Uuid>,
    /// `leader`, `follower`, `candidate` or `learner`.
    pub role: String,
    /// The Raft term it is in.
    pub term: u64,
    /// Who leads, as far as it knows.
    #[serde(default)]
    pub leader: Option<u64>,
    /// Index of the last entry in its log.
    #[serde(default)]
    pub last_log_index: Option<u64>,
    /// Index of the last entry a majority holds.
    #[serde(default)]
    pub committed_index: Option<u64>,
    /// Index of the last entry its state contains.
    #[serde(default)]
    pub applied_index: Option<u64>,
    /// Index of the last entry its snapshot contains.
    #[serde(default)]
    pub snapshot_index: Option<u64>,
    /// Everybody who belongs to the cluster.
    #[serde(default)]
    pub members: Vec<Member>,
    /// Whether a change of members is half-way.
    #[serde(default)]
    pub changing_members: bool,
    /// How far each follower is; only a leader knows.
    #[serde(default)]
    pub replication: Vec<Replication>,
    /// Sessions alive.
    #[serde(default)]
    pub sessions: u64,
    /// Locks held.
    #[serde(default)]
    pub locks: u64,
    /// Acquisitions that wait.
    #[serde(default)]
    pub waiters: u64,
}

/// A member of the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Where the other members reach it.
    #[serde(default)]
    pub peer_addr: String,
    /// Where clients reach it.
    #[serde(default)]
    pub client_url: String,
    /// Whether it votes; a learner does not.
    #[serde(default)]
    pub voter: bool,
}

/// How far a follower's log agrees with the leader's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replication {
    /// The follower.
    pub id: u64,
    /// The last index they agree on.
    #[serde(default)]
    pub matched_index: Option<u64>,
    /// Entries it is behind.
    #[serde(default)]
    pub lag: Option<u64>,
    /// How long ago it last answered the leader.
    #[serde(default)]
    pub silent_ms: Option<u64>,
}

/// `POST /v1/locks/{name}/break`.
#[derive(Debug, Serialize)]
pub struct Break {
    /// Break only the grant with this token.
    pub fencing_token: u64,
}

/// `POST /v1/cluster/members`.
#[derive(Debug, Serialize, Deserialize)]
pub struct AddMember {
    /// The new member's id.
    pub id: u64,
    /// Where the other members reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
    /// Whether it shall vote once it has caught up.
    pub voter: bool,
}

/// What this client reads of a problem (RFC 9457).
#[derive(Debug, Default, Deserialize)]
struct ProblemBody {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    leader: Option<Leader>,
    #[serde(default)]
    errors: Vec<FieldError>,
}

#[derive(Debug, Deserialize)]
struct FieldError {
    #[serde(default)]
    pointer: String,
    #[serde(default)]
    reason: String,
}

/// Reads an answer that is no success; one that is no problem either has an empty slug.
pub(crate) fn problem(status: u16, body: &[u8]) -> Problem {
    let body: ProblemBody = serde_json::from_slice(body).unwrap_or_default();
    // The cluster's detail names every error; another one's may leave that to `errors`.
    let detail = match (body.detail, body.errors.as_slice()) {
        (detail, _) if !detail.is_empty() => detail,
        (_, []) => body.title,
        (_, errors) => errors
            .iter()
            .map(|error| format!("{} {}", error.pointer, error.reason))
            .collect::<Vec<_>>()
            .join("; "),
    };
    Problem {
        status,
        slug: body.kind.rsplit('/').next().unwrap_or_default().to_owned(),
        detail,
        leader: body.leader,
    }
}
