//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use guard::GuardError;
use service_kit::Problem;
use testkit::check_documented;

use crate::domain::error::PaymentError;

fn answered() -> Vec<Problem> {
    let answered: Vec<PaymentError> = vec![
        PaymentError::NotFound,
        PaymentError::Mismatch,
        PaymentError::Declined,
        PaymentError::Voided,
        PaymentError::Captured,
        PaymentError::NotAuthorized,
        PaymentError::RefundMismatch,
        PaymentError::CurrencyMismatch,
        PaymentError::OverRefund { refundable_minor: 1 },
        PaymentError::StaleFencingToken,
        PaymentError::InProgress,
        PaymentError::Unknown,
        PaymentError::Database(sqlx::Error::PoolTimedOut),
    ];
    answered.into_iter().map(Problem::from).collect()
}

#[test]
fn every_error_is_documented_and_nothing_else_is() {
    let openapi = serde_json::to_value(super::routes().get_openapi()).expect("JSON");
    let guarded = GuardError::SLUGS.map(|slug| (503, slug));
    let of_headers = [(400, "unknown-strategy")];
    check_documented(&openapi, answered(), guarded.into_iter().chain(of_headers));
}
