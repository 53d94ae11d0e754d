//! What `/openapi.json` promises of errors, held against what `error.rs` makes of them.

use std::collections::BTreeSet;

use guard::GuardError;
use service_kit::Problem;
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
