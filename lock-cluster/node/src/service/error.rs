//! What a caller of the service can meet besides an answer.
//!
//! The enum is cut by what the caller can do next, and it knows no HTTP. What it never says is "failed": a
//! command that was handed to Raft may be committed long after everybody stopped waiting for it. All commands
//! carry ids the client chose, so the one right thing after [`ServiceError::Unknown`] is to ask again with the
//! same ids, here or at another node.

/// The node that leads, as far as this one knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its member id.
    pub id: u64,
    /// Its base URL for clients.
    pub client_url: String,
}

/// Why there is no answer (yet).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Another node leads: ask it. The command was not accepted here; should it have been accepted before an
    /// election, asking again with the same ids finds its answer.
    #[error("this node does not lead")]
    NotLeader {
        /// Who does, if known.
        leader: Leader,
    },
    /// Nobody is known to lead: an election is going on, or a quorum is missing.
    #[error("no leader is known")]
    NoLeader,
    /// More is waiting to be proposed than this node takes. Nothing happened.
    #[error("too many requests are waiting")]
    Overloaded,
    /// The command was proposed and its fate is not known: it may have been carried out, or may still be.
    #[error("the outcome is not known")]
    Unknown,
    /// A membership change that cannot be made as asked, or not now. Nothing happened.
    #[error("the membership was not changed: {0}")]
    MembershipRefused(String),
    /// A membership change is in the log and not committed: this one, or one that was asked for before. Whoever leads
    /// finishes it as soon as it can; asking again tells when.
    #[error("a change of members is under way: {0}")]
    MembershipPending(String),
    /// The last voter cannot be removed. Nothing happened.
    #[error("the last voter cannot be removed")]
    LastVoter,
    /// The node is stopping, or had to stop.
    #[error("the node is shutting down")]
    ShuttingDown,
}

impl ServiceError {
    /// Whether the command may nevertheless have been, or still be, carried out.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Unknown | Self::MembershipPending(_) => true,
            Self::NotLeader { .. }
            | Self::NoLeader
            | Self::Overloaded
            | Self::MembershipRefused(_)
            | Self::LastVoter
            | Self::ShuttingDown => false,
        }
    }
}
