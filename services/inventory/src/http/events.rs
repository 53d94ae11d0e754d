//! Events.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use service_kit::{ApiJson, ApiPath, ApiQuery, Problem};
use ticketing_types::EventId;
use ticketing_types::inventory::{CreateEvent, EventList, EventView};
use utoipa::IntoParams;

use super::{AppState, error};

/// Events in one list, unless the request asks for fewer or more.
const LIMIT_DEFAULT: u32 = 100;
/// Most events in one list.
const LIMIT_MAX: u32 = 500;

#[derive(Deserialize, IntoParams)]
pub(super) struct EventPath {
    /// The event.
    #[param(value_type = String)]
    pub(super) id: EventId,
}

#[derive(Deserialize, IntoParams)]
pub(super) struct ListQuery {
    /// At most this many, 1 to 500 (default 100).
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Create an event.
#[utoipa::path(
    post, path = "/v1/events", tag = "inventory", request_body = CreateEvent,
    responses(
        (status = 201, body = EventView, description = "Created"),
        (status = 200, body = EventView, description = "The same request again: the event as it is now"),
        (status = 400, description = "`invalid-request`"),
        (status = 409, description = "`event-exists`: the id is taken by another event"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    ApiJson(request): ApiJson<CreateEvent>,
) -> Result<(StatusCode, Json<EventView>), Problem> {
    let (event, created) = state.inventory.create_event(&request).await?;
    let status = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(event)))
}

/// List events, the newest first.
#[utoipa::path(
    get, path = "/v1/events", tag = "inventory", params(ListQuery),
    responses(
        (status = 200, body = EventList, description = "The newest events"),
        (status = 400, description = "`invalid-request`"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<EventList>, Problem> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(
            "/limit",
            format!("a limit is a whole number from 1 to {LIMIT_MAX}"),
        ));
    }
    let events = state
        .inventory
        .store
        .events(limit)
        .await
        .map_err(error::database)?;
    Ok(Json(EventList { events }))
}

/// Show an event with its stock.
#[utoipa::path(
    get, path = "/v1/events/{id}", tag = "inventory", params(EventPath),
    responses(
        (status = 200, body = EventView, description = "The event"),
        (status = 404, description = "`event-not-found`"),
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    ApiPath(EventPath { id }): ApiPath<EventPath>,
) -> Result<Json<EventView>, Problem> {
    let event = state.inventory.store.event(&id).await.map_err(error::database)?;
    event.map(Json).ok_or_else(|| error::event_not_found(&id))
}
