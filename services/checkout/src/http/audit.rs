//! `GET /v1/audit-records/{event_id}`: checkout's book of one event, for the audit.

use axum::Json;
use axum::extract::State;
use service_kit::{ApiPath, Problem};
use ticketing_types::EventId;
use ticketing_types::checkout::CheckoutRecords;

use super::error::database;
use crate::domain::checkout::Checkout;

/// Every purchase whose cart names the event. An event nobody wanted has none.
#[utoipa::path(
    get, path = "/v1/audit-records/{event_id}", tag = "audit",
    params(("event_id" = EventId, Path, description = "The event")),
    responses((status = 200, body = CheckoutRecords))
)]
pub(super) async fn records(
    State(checkout): State<Checkout>,
    ApiPath(event_id): ApiPath<EventId>,
) -> Result<Json<CheckoutRecords>, Problem> {
    let records = checkout.store().records(&event_id).await.map_err(database)?;
    Ok(Json(records))
}
