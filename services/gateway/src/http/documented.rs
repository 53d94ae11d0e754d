//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use service_kit::Problem;
use testkit::check_documented;

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
    let openapi = serde_json::to_value(super::routes().get_openapi()).expect("JSON");
    check_documented(&openapi, answered(), []);
}
