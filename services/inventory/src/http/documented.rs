//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use guard::GuardError;
use service_kit::Problem;
use testkit::check_documented;
use ticketing_types::EventId;

use super::error::event_not_found;
use crate::domain::error::{ConfirmError, CreateEventError, PlaceHoldError, ReleaseError};

fn answered() -> Vec<Problem> {
    let event_id = EventId::parse("gala").expect("an id");
    vec![
        PlaceHoldError::UnknownEvent(event_id.clone()).into(),
        PlaceHoldError::MixedCurrencies.into(),
        PlaceHoldError::AmountTooLarge.into(),
        PlaceHoldError::SoldOut(Vec::new()).into(),
        PlaceHoldError::LimitReached {
            event_id: event_id.clone(),
            limit: 1,
            held_or_owned: 1,
            requested: 1,
        }
        .into(),
        PlaceHoldError::Mismatch.into(),
        PlaceHoldError::Closed.into(),
        PlaceHoldError::Expired.into(),
        PlaceHoldError::StaleToken(event_id.clone()).into(),
        PlaceHoldError::Contended.into(),
        ConfirmError::NotFound.into(),
        ConfirmError::Closed.into(),
        ConfirmError::Expired.into(),
        ReleaseError::Confirmed.into(),
        ReleaseError::StillPlaced.into(),
        CreateEventError::Exists.into(),
        CreateEventError::Database(sqlx::Error::PoolTimedOut).into(),
        event_not_found(&event_id),
    ]
}

#[test]
fn every_error_is_documented_and_nothing_else_is() {
    let openapi = serde_json::to_value(super::routes().get_openapi()).expect("JSON");
    let guarded = GuardError::SLUGS.map(|slug| (503, slug));
    let of_headers = [(400, "unknown-strategy")];
    check_documented(&openapi, answered(), guarded.into_iter().chain(of_headers));
}
