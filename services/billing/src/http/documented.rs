//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use std::collections::BTreeSet;

use guard::GuardError;
use service_kit::Problem;

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
    // Of the extractors, and of a commit whose answer was lost.
    let elsewhere = [
        (400, "invalid-request"),
        (400, "unknown-strategy"),
        (503, "outcome-unknown"),
    ];
    let guarded = GuardError::SLUGS.map(|slug| (503, slug));
    let elsewhere = elsewhere.into_iter().chain(guarded);
    let elsewhere = elsewhere.map(|(status, slug)| (status, slug.to_owned()));
    let answered: BTreeSet<_> = answered()
        .into_iter()
        .map(|problem| (problem.status.as_u16(), problem.slug.to_string()))
        .chain(elsewhere)
        .collect();
    let openapi = serde_json::to_value(super::routes().get_openapi()).expect("JSON");
    assert_eq!(testkit::documented_problems(&openapi), answered);
}
