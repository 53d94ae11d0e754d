//! From refusals to problems: the only place that knows their statuses.

use std::time::Duration;

use axum::http::StatusCode;
use guard::GuardError;
use service_kit::Problem;
use ticketing_types::EventId;

use crate::domain::error::{ConfirmError, CreateEventError, PlaceHoldError, ReleaseError};

/// When a client should come back after something that passes by itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<CreateEventError> for Problem {
    fn from(error: CreateEventError) -> Self {
        match error {
            CreateEventError::Exists => conflict("event-exists").detail(error.to_string()),
            CreateEventError::Database(error) => database(error),
        }
    }
}

impl From<PlaceHoldError> for Problem {
    fn from(error: PlaceHoldError) -> Self {
        let detail = error.to_string();
        match error {
            PlaceHoldError::UnknownEvent(event_id) => unprocessable("unknown-event")
                .detail(detail)
                .with("event_id", event_id),
            PlaceHoldError::MixedCurrencies => unprocessable("mixed-currencies").detail(detail),
            PlaceHoldError::AmountTooLarge => Self::invalid("/items", detail),
            PlaceHoldError::SoldOut(lines) => conflict("sold-out").detail(detail).with("lines", lines),
            PlaceHoldError::LimitReached {
                event_id,
                limit,
                held_or_owned,
                requested,
            } => unprocessable("limit-reached")
                .detail(detail)
                .with("event_id", event_id)
                .with("limit", limit)
                .with("held_or_owned", held_or_owned)
                .with("requested", requested),
            PlaceHoldError::Mismatch => conflict("hold-mismatch").detail(detail),
            PlaceHoldError::Closed => conflict("hold-closed").detail(detail),
            PlaceHoldError::Expired => conflict("hold-expired").detail(detail),
            PlaceHoldError::StaleToken(_) => conflict("stale-fencing-token")
                .detail("the lock was lost, and somebody else has written since; nothing was held"),
            PlaceHoldError::Contended => {
                Self::busy("contended", RETRY_AFTER).detail(format!("{detail}; nothing was held"))
            }
            PlaceHoldError::Guard(error) => guarded(&error),
            PlaceHoldError::Injected(problem) => problem,
            PlaceHoldError::Database(error) => database(error),
        }
    }
}

impl From<ConfirmError> for Problem {
    fn from(error: ConfirmError) -> Self {
        let detail = error.to_string();
        match error {
            ConfirmError::NotFound => Self::new(StatusCode::NOT_FOUND, "hold-not-found").detail(detail),
            ConfirmError::Closed => conflict("hold-closed").detail(detail),
            ConfirmError::Expired => conflict("hold-expired").detail(detail),
            ConfirmError::Injected(problem) => problem,
            ConfirmError::Database(error) => database(error),
        }
    }
}

impl From<ReleaseError> for Problem {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::Confirmed => conflict("hold-confirmed").detail(error.to_string()),
            ReleaseError::StillPlaced => Self::busy("busy", RETRY_AFTER).detail(error.to_string()),
            ReleaseError::Database(error) => database(error),
        }
    }
}

/// 404.
pub(super) fn event_not_found(id: &EventId) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "event-not-found").detail(format!("there is no event {id}"))
}

/// Contention is 503 with `Retry-After` (I9), and so is a commit of which nobody knows whether it happened; they
/// have different names, since only the first means that nothing was done. Anything else is a fault of ours.
pub(super) fn database(error: sqlx::Error) -> Problem {
    if service_db::is_outcome_unknown(&error) {
        tracing::warn!(%error, "the database may have done it");
        Problem::busy("outcome-unknown", RETRY_AFTER)
            .detail("it may have been done or not; the same request again will tell")
    } else if service_db::is_retryable(&error) {
        tracing::warn!(%error, "the database is busy");
        Problem::busy("busy", RETRY_AFTER).detail("the database is busy")
    } else {
        tracing::error!(%error, "the database failed");
        Problem::internal()
    }
}

fn guarded(error: &GuardError) -> Problem {
    error.log();
    Problem::busy(error.slug(), error.retry_after()).detail(error.detail())
}

fn conflict(slug: &'static str) -> Problem {
    Problem::new(StatusCode::CONFLICT, slug)
}

fn unprocessable(slug: &'static str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, slug)
}
