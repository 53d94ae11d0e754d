//! From errors to problems: the only place that knows their statuses.

use std::time::Duration;

use axum::http::StatusCode;
use service_kit::Problem;

use crate::domain::buy::BuyError;
use crate::domain::cancel::CancelError;

/// When a client should come back for something that passes by itself.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<BuyError> for Problem {
    fn from(error: BuyError) -> Self {
        match error {
            BuyError::KeyReused => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused")
                .detail("this buyer used this Idempotency-Key with another cart or card; take a new key"),
            BuyError::InProgress(id) => Self::new(StatusCode::CONFLICT, "purchase-in-progress")
                .detail("the same purchase is being worked on; send the request again to learn how it ends")
                .with("purchase_id", &id)
                .retry_after(RETRY_AFTER),
            BuyError::Busy => Self::busy("busy", RETRY_AFTER)
                .detail("nothing could be held for now; nothing happened, send the request again"),
            BuyError::Guard(error) => {
                error.log();
                Self::busy(error.slug(), error.retry_after()).detail(error.detail())
            }
            BuyError::Injected(problem) => problem,
            BuyError::Store(error) => database(error),
        }
    }
}

impl From<CancelError> for Problem {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::NotFound => not_found(),
            CancelError::Store(error) => database(error),
        }
    }
}

/// 404.
pub(super) fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "purchase-not-found").detail("there is no purchase of this id")
}

/// Busy is 503 with `Retry-After`, and so is a commit of which nobody knows whether it happened. They have different
/// names: only the first one says that nothing was done. Anything else is a fault of ours.
pub(super) fn database(error: sqlx::Error) -> Problem {
    if service_db::is_outcome_unknown(&error) {
        tracing::warn!(%error, "the book may have been written");
        Problem::busy("outcome-unknown", RETRY_AFTER)
            .detail("it may have been done or not; the same request again will tell")
    } else if service_db::is_retryable(&error) {
        tracing::warn!(%error, "the book is busy");
        Problem::busy("database-busy", RETRY_AFTER).detail("the database is busy")
    } else {
        tracing::error!(%error, "the book failed");
        Problem::internal()
    }
}
