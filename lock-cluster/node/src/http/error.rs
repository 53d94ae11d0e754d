//! Where a refusal meets its status: the one table from the service's words to HTTP.
//!
//! Three families, told apart by what a client does next. *Elsewhere*: 421 with the leader, 503 `no-leader`. *Later*:
//! 503 and 429, always with `Retry-After`. *Never like this*: 4xx. None of them says that a command did not happen,
//! unless its words do: a client that is in doubt asks again with the same ids.

use std::time::Duration;

use axum::http::StatusCode;
use lock_core::{AcquireAnswer, Refusal, Reply};
use service_kit::Problem;

use crate::service::ServiceError;

/// When to come back. An election takes about a second; `Retry-After` knows nothing shorter.
const LATER: Duration = Duration::from_secs(1);

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::NotLeader { leader } => Problem::new(StatusCode::MISDIRECTED_REQUEST, "not-leader")
                .detail(format!("node {} leads; ask it", leader.id))
                .with(
                    "leader",
                    serde_json::json!({ "id": leader.id, "client_url": leader.client_url }),
                ),
            ServiceError::NoLeader => Problem::busy("no-leader", LATER)
                .detail("no leader is known: an election is going on, or a quorum of the members is missing"),
            ServiceError::Overloaded => Problem::busy("overloaded", LATER)
                .detail("too many requests are waiting; nothing was done for this one"),
            ServiceError::Unknown => Problem::busy("outcome-unknown", LATER)
                .detail("the command may have been carried out; ask again with the same ids"),
            ServiceError::MembershipRefused(why) => {
                Problem::new(StatusCode::CONFLICT, "membership-refused").detail(why)
            }
            ServiceError::MembershipPending(_) => Problem::busy("membership-pending", LATER)
                .detail(format!("{error}. The leader finishes it as soon as it can")),
            ServiceError::LastVoter => {
                Problem::new(StatusCode::CONFLICT, "last-member").detail(error.to_string())
            }
            ServiceError::ShuttingDown => Problem::busy("shutting-down", LATER)
                .detail("this node is stopping; ask another one with the same ids"),
        }
    }
}

/// A command that was ordered and turned down.
pub(crate) fn refused(refusal: Refusal) -> Problem {
    let (status, slug) = match refusal {
        Refusal::SessionExpired => (StatusCode::GONE, "session-expired"),
        Refusal::NotHeld => (StatusCode::NOT_FOUND, "not-held"),
        Refusal::NamesDiffer => (StatusCode::CONFLICT, "names-differ"),
        Refusal::Acknowledged => (StatusCode::CONFLICT, "already-acknowledged"),
        Refusal::TokenFloorTooHigh => (StatusCode::CONFLICT, "token-floor-too-high"),
        Refusal::StaleToken => (StatusCode::CONFLICT, "stale-fencing-token"),
        Refusal::TooManyUnacknowledged => (StatusCode::TOO_MANY_REQUESTS, "too-many-unacknowledged"),
        Refusal::TooManyAcquisitions => (StatusCode::TOO_MANY_REQUESTS, "too-many-acquisitions"),
        Refusal::TooManySessions => (StatusCode::TOO_MANY_REQUESTS, "too-many-sessions"),
        Refusal::TooManyNames => (StatusCode::TOO_MANY_REQUESTS, "too-many-names"),
        Refusal::TooManyWaiters => (StatusCode::TOO_MANY_REQUESTS, "too-many-waiters"),
    };
    let problem = Problem::new(status, slug).detail(refusal.to_string());
    if refusal.is_limit() {
        problem.retry_after(LATER)
    } else {
        problem
    }
}

/// An acquisition that does not hold, and why.
pub(crate) fn not_granted(answer: &AcquireAnswer) -> Problem {
    let over = |reason: &str, detail: &str| {
        Problem::new(StatusCode::CONFLICT, "already-released")
            .detail(detail)
            .with("reason", reason)
    };
    match answer {
        AcquireAnswer::Held => Problem::new(StatusCode::CONFLICT, "lock-held")
            .detail("somebody else holds it, or stands in line for it"),
        AcquireAnswer::TimedOut => Problem::busy("lock-wait-timeout", LATER)
            .detail("it was not granted in time; nothing of this acquisition stays behind"),
        AcquireAnswer::Released => over(
            "released",
            "this acquisition was released and will not hold again",
        ),
        AcquireAnswer::Abandoned => over(
            "abandoned",
            "its client went away, so this acquisition was given up",
        ),
        AcquireAnswer::Broken => over("broken", "an administrator broke this acquisition"),
        AcquireAnswer::Granted { .. } | AcquireAnswer::Queued => unexpected(answer),
    }
}

/// A command that was not carried out; or a reply to another command.
pub(crate) fn not_done(reply: Reply) -> Problem {
    match reply {
        Reply::Refused(refusal) => refused(refusal),
        reply => unexpected(&reply),
    }
}

/// An answer to another question than the one that was asked: a bug of ours, and no reason to guess.
pub(crate) fn unexpected(answer: &impl std::fmt::Debug) -> Problem {
    tracing::error!(?answer, "an answer does not belong to its question");
    Problem::internal()
}
