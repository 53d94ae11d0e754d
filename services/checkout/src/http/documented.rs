//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use guard::GuardError;
use service_kit::Problem;
use testkit::check_documented;
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
    let openapi = serde_json::to_value(super::routes().get_openapi()).expect("JSON");
    let guarded = GuardError::SLUGS.map(|slug| (503, slug));
    let of_headers = [
        (400, "unknown-strategy"),
        (400, "idempotency-key-missing"),
        (400, "idempotency-key-invalid"),
    ];
    check_documented(&openapi, answered(), guarded.into_iter().chain(of_headers));
}
