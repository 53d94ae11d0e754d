//! How a call to a peer can end when it does not succeed; see [`crate::peer`].

use std::time::Duration;

use crate::problem::Problem;

/// How a call did not succeed, by what the caller can do next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// A 4xx: definitely not done, and asking again would not change it.
    #[error("{peer} refused: {problem}")]
    Refused {
        /// Whom we asked.
        peer: &'static str,
        /// What it said.
        problem: Problem,
    },
    /// 503 (or 429) with `Retry-After`: definitely nothing happened; later it may.
    #[error("{peer} is busy: {problem}")]
    Busy {
        /// Whom we asked.
        peer: &'static str,
        /// What it said.
        problem: Problem,
    },
    /// No instance took the connection: definitely nothing happened.
    #[error("{peer} cannot be reached: {reason}")]
    Unreachable {
        /// Whom we asked.
        peer: &'static str,
        /// Why not.
        reason: String,
    },
    /// Perhaps done, perhaps not: ask again with the same request.
    #[error("what {peer} did is unknown: {reason}")]
    Unknown {
        /// Whom we asked.
        peer: &'static str,
        /// What we saw instead of an answer.
        reason: String,
    },
}

/// What is certain about a call that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not done.
    NotDone,
    /// Nobody knows.
    Unknown,
}

impl CallError {
    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Busy { .. } | Self::Unreachable { .. } | Self::Unknown { .. } => true,
        }
    }

    /// What is certain.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Refused { .. } | Self::Busy { .. } | Self::Unreachable { .. } => Outcome::NotDone,
            Self::Unknown { .. } => Outcome::Unknown,
        }
    }

    /// The peer's problem, when it sent one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } | Self::Busy { problem, .. } => Some(problem),
            Self::Unreachable { .. } | Self::Unknown { .. } => None,
        }
    }

    /// The slug of the peer's problem, or "".
    pub fn slug(&self) -> &str {
        self.problem().map_or("", |problem| problem.slug.as_ref())
    }
}

/// For callers that have nothing better to say: the peer's own problem goes through, all else is a 503.
impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let text = error.to_string();
        match error {
            CallError::Refused { problem, .. } | CallError::Busy { problem, .. } => problem,
            CallError::Unreachable { peer, .. } => {
                Problem::busy(format!("{peer}-unavailable"), Duration::from_secs(1)).detail(text)
            }
            CallError::Unknown { .. } => {
                Problem::busy("outcome-unknown", Duration::from_secs(1)).detail(text)
            }
        }
    }
}
