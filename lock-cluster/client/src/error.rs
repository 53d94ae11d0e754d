//! Why there is no lock, named for what the caller can do next.

use lock_pipe::Problem;

/// What an acquire, a release or a look at the cluster can end in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Somebody holds it, and the caller did not want to wait.
    #[error("the lock is held by somebody else")]
    Held,
    /// It was not granted within the wait; nothing of the attempt stays behind.
    #[error("the lock was not granted in time")]
    WaitTimeout,
    /// No leader, no quorum or no connection until the caller's deadline. The attempt is given up in the background.
    #[error("the lock cluster did not answer: {detail}")]
    Unavailable {
        /// What the last node said, or why it could not be asked.
        detail: String,
    },
    /// The session ended: whatever it held may be granted to somebody else.
    #[error("the session was lost, and every lock with it")]
    SessionLost,
    /// What is asked about is not there: a lock nobody holds, an acquisition that was never granted.
    #[error("not there: {detail}")]
    NotFound {
        /// What the cluster said.
        detail: String,
    },
    /// The cluster refused the request itself; asking again will not help.
    #[error("refused as {slug}: {detail}")]
    Invalid {
        /// The last segment of the problem's type, for example `invalid-request`.
        slug: String,
        /// What the cluster said.
        detail: String,
    },
}

impl LockError {
    /// Whether the same request can succeed later without being changed.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Held | Self::WaitTimeout | Self::Unavailable { .. } | Self::SessionLost => true,
            Self::NotFound { .. } | Self::Invalid { .. } => false,
        }
    }

    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self::Unavailable {
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid(slug: &str, detail: impl Into<String>) -> Self {
        Self::Invalid {
            slug: slug.to_owned(),
            detail: detail.into(),
        }
    }
}

/// The error of a problem that is none of those the caller expects.
impl From<Problem> for LockError {
    fn from(problem: Problem) -> Self {
        let Problem {
            status, slug, detail, ..
        } = problem;
        match status {
            410 => Self::SessionLost,
            404 => Self::NotFound { detail },
            // A bound of the cluster was met: too many of something right now.
            429 | 503 => Self::Unavailable { detail },
            status if slug.is_empty() => {
                Self::invalid("unexpected", format!("an answer with status {status}"))
            }
            _ => Self::Invalid { slug, detail },
        }
    }
}
