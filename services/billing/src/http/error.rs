//! From [`PaymentError`] to a problem: the only place that knows their statuses.

use std::time::Duration;

use axum::http::StatusCode;
use guard::GuardError;
use service_kit::Problem;

use crate::domain::error::PaymentError;

/// When a client should come back after something that passes by itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<PaymentError> for Problem {
    fn from(error: PaymentError) -> Self {
        let detail = error.to_string();
        let refused = |status, slug: &'static str| Problem::new(status, slug).detail(detail.clone());
        match error {
            PaymentError::NotFound => refused(StatusCode::NOT_FOUND, "payment-not-found"),
            PaymentError::Mismatch => refused(StatusCode::UNPROCESSABLE_ENTITY, "payment-mismatch"),
            PaymentError::Declined => refused(StatusCode::PAYMENT_REQUIRED, "payment-declined"),
            PaymentError::Voided => refused(StatusCode::CONFLICT, "payment-voided"),
            PaymentError::Captured => refused(StatusCode::CONFLICT, "payment-captured"),
            PaymentError::NotAuthorized => refused(StatusCode::CONFLICT, "payment-not-authorized"),
            PaymentError::RefundMismatch => refused(StatusCode::UNPROCESSABLE_ENTITY, "refund-mismatch"),
            PaymentError::CurrencyMismatch => refused(StatusCode::UNPROCESSABLE_ENTITY, "currency-mismatch"),
            PaymentError::OverRefund { refundable_minor } => {
                refused(StatusCode::UNPROCESSABLE_ENTITY, "over-refund").with("refundable", refundable_minor)
            }
            PaymentError::StaleFencingToken => refused(StatusCode::CONFLICT, "stale-fencing-token"),
            PaymentError::InProgress => Problem::busy("payment-in-progress", RETRY_AFTER).detail(detail),
            PaymentError::Unknown => Problem::busy("payment-unknown", RETRY_AFTER).detail(detail),
            PaymentError::Guard(error) => not_entered(&error),
            PaymentError::Database(error) => database(&error),
            PaymentError::Injected(problem) => problem,
        }
    }
}

fn not_entered(error: &GuardError) -> Problem {
    error.log();
    Problem::busy(error.slug(), error.retry_after()).detail(error.detail())
}

/// Busy is 503 with `Retry-After`, and so is a commit of which nobody knows whether it happened. They have different
/// names: only the first one says that nothing was done. Anything else is a fault of ours.
pub(super) fn database(error: &sqlx::Error) -> Problem {
    if service_db::is_outcome_unknown(error) {
        tracing::warn!(%error, "the database may have done it");
        Problem::busy("outcome-unknown", RETRY_AFTER)
            .detail("it may have been done or not; the same request again will tell")
    } else if service_db::is_retryable(error) {
        tracing::warn!(%error, "the database is busy");
        Problem::busy("database-busy", RETRY_AFTER).detail("the database is busy")
    } else {
        tracing::error!(%error, "the database failed");
        Problem::internal()
    }
}
