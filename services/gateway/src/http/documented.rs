//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use std::collections::BTreeSet;

use service_kit::Problem;

use super::error::{database, declined};
use crate::domain::rules::Refusal;
use crate::store::LedgerError;

fn answered() -> Vec<Problem> {
    let refusals = [
        Refusal::KeyReused,
        Refusal::ReferenceClosed,
        Refusal::AuthorizationNotFound,
        Refusal::AuthorizationVoided,
        Refusal::AlreadyCaptured,
        Refusal::ExceedsAuthorization,
        Refusal::CurrencyMismatch,
        Refusal::OverRefund { refundable_minor: 1 },
        Refusal::FailedBeforeCharging,
    ];
    let refused = refusals.map(|refusal| LedgerError::Refused(refusal).into());
    refused
        .into_iter()
        .chain([declined(), database(sqlx::Error::PoolTimedOut)])
        .collect()
}

#[test]
fn every_error_is_documented_and_nothing_else_is() {
    // Of the extractors, and of a commit whose answer was lost.
    let elsewhere = [(400, "invalid-request"), (503, "outcome-unknown")];
    let elsewhere = elsewhere.map(|(status, slug)| (status, slug.to_owned()));
    let answered: BTreeSet<_> = answered()
        .into_iter()
        .map(|problem| (problem.status.as_u16(), problem.slug.to_string()))
        .chain(elsewhere)
        .collect();
    let openapi = serde_json::to_value(super::routes().get_openapi()).expect("JSON");
    assert_eq!(testkit::documented_problems(&openapi), answered);
}
