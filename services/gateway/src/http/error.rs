//! From refusals to problems: the only place that knows their statuses.

use std::time::Duration;

use axum::http::StatusCode;
use service_kit::Problem;

use crate::domain::rules::Refusal;
use crate::store::LedgerError;

/// When a client should come back after something that passes by itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Refused(refusal) => refused(&refusal),
            LedgerError::Database(error) => database(error),
        }
    }
}

fn refused(refusal: &Refusal) -> Problem {
    let (status, slug) = match refusal {
        Refusal::KeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "key-reused"),
        Refusal::ReferenceClosed => (StatusCode::CONFLICT, "reference-closed"),
        Refusal::AuthorizationNotFound => (StatusCode::NOT_FOUND, "authorization-not-found"),
        Refusal::AuthorizationVoided => (StatusCode::CONFLICT, "authorization-voided"),
        Refusal::AlreadyCaptured => (StatusCode::CONFLICT, "already-captured"),
        Refusal::ExceedsAuthorization => (StatusCode::UNPROCESSABLE_ENTITY, "exceeds-authorization"),
        Refusal::CurrencyMismatch => (StatusCode::UNPROCESSABLE_ENTITY, "currency-mismatch"),
        Refusal::OverRefund { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "over-refund"),
        Refusal::FailedBeforeCharging => (StatusCode::SERVICE_UNAVAILABLE, "processor-unavailable"),
    };
    let problem = Problem::new(status, slug).detail(refusal.to_string());
    match refusal {
        Refusal::OverRefund { refundable_minor } => problem.with("refundable", refundable_minor),
        Refusal::FailedBeforeCharging => problem.retry_after(RETRY_AFTER),
        _ => problem,
    }
}

/// 402. A decline is a line of the ledger, not a refusal: the same key is declined again.
pub(super) fn declined() -> Problem {
    Problem::new(StatusCode::PAYMENT_REQUIRED, "card-declined").detail("the card was declined")
}

/// Busy is 503 with `Retry-After`, and so is a commit that got no answer, under a name that says so; anything else is
/// a fault of ours.
pub(super) fn database(error: sqlx::Error) -> Problem {
    if service_db::is_outcome_unknown(&error) {
        tracing::warn!(%error, "the ledger may have it");
        Problem::busy("outcome-unknown", RETRY_AFTER).detail("ask again with the same key")
    } else if service_db::is_retryable(&error) {
        tracing::warn!(%error, "the ledger is busy");
        Problem::busy("processor-unavailable", RETRY_AFTER).detail("the ledger is busy")
    } else {
        tracing::error!(%error, "the ledger failed");
        Problem::internal()
    }
}
