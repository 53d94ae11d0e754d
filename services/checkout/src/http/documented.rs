//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use std::collections::BTreeSet;

use guard::GuardError;
use service_kit::Problem;
use ticketing_types::PurchaseId;

use super::answer::problem_of;
use crate::domain::buy::BuyError;
use crate::domain::cancel::CancelError;
use crate::domain::saga::Rejection;

fn answered() -> Vec<Problem> {
    let detail = String::new;
    let purchase_id = PurchaseId::parse("p-1").expect("an id");
    let mut answered: Vec<Problem> = vec![
        BuyError::KeyReused.into(),
        BuyError::InProgress(purchase_id).into(),
        BuyError::Busy.into(),
        BuyError::Store(sqlx::Error::PoolTimedOut).into(),
        CancelError::NotFound.into(),
    ];
    let rejections = [
        Rejection::SoldOut { lines: Vec::new() },
        Rejection::LimitReached {
            detail: detail(),
            event_id: None,
            limit: None,
        },
        Rejection::UnknownEvent { detail: detail() },
        Rejection::MixedCurrencies { detail: detail() },
        Rejection::AmountOverflow { detail: detail() },
        Rejection::PaymentDeclined,
        Rejection::HoldExpired,
        Rejection::Cancelled,
        Rejection::Refused { slug: detail() },
        Rejection::Busy,
    ];
    answered.extend(rejections.iter().filter_map(problem_of));
    answered
}

#[test]
fn every_error_is_documented_and_nothing_else_is() {
    // Of the extractors, and of a commit whose answer was lost.
    let elsewhere = [
        (400, "invalid-request"),
        (400, "unknown-strategy"),
        (503, "outcome-unknown"),
        (400, "idempotency-key-missing"),
        (400, "idempotency-key-invalid"),
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
