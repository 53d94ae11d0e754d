//! Inventory's book, for the audit.

use axum::Json;
use axum::extract::State;
use service_kit::{ApiPath, Problem};
use ticketing_types::inventory::InventoryRecords;

use super::events::EventPath;
use super::{AppState, error};

/// Show the whole book of one event.
#[utoipa::path(
    get, path = "/v1/audit-records/{id}", tag = "audit", params(EventPath),
    responses(
        (status = 200, body = InventoryRecords, description = "The event, its holds and its fencing tokens"),
        (status = 404, description = "`event-not-found`"),
    )
)]
pub(super) async fn records(
    State(state): State<AppState>,
    ApiPath(EventPath { id }): ApiPath<EventPath>,
) -> Result<Json<InventoryRecords>, Problem> {
    let records = state
        .inventory
        .store
        .records(&id)
        .await
        .map_err(error::database)?;
    records.map(Json).ok_or_else(|| error::event_not_found(&id))
}
