//! Holds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use service_kit::{ApiJson, ApiPath, CallContext, Problem};
use ticketing_types::HoldId;
use ticketing_types::inventory::{ConfirmedHold, HoldView, PlaceHold};
use tracing::Span;
use utoipa::IntoParams;

use super::AppState;
use crate::domain::place::Wish;

#[derive(Deserialize, IntoParams)]
pub(super) struct HoldPath {
    /// The hold; chosen by the caller.
    #[param(value_type = String)]
    id: HoldId,
}

/// Hold tickets for a while, all or nothing.
#[utoipa::path(
    put, path = "/v1/holds/{id}", tag = "inventory", params(HoldPath), request_body = PlaceHold,
    responses(
        (status = 201, body = HoldView, description = "Held"),
        (status = 200, body = HoldView, description = "The same request again: the same hold"),
        (status = 400, description = "`invalid-request`, `unknown-strategy`"),
        (status = 409, description = "`sold-out` with `lines`; `hold-mismatch`, `hold-closed`, `hold-expired`: \
                                      what became of this id; `stale-fencing-token`: nothing was held"),
        (status = 422, description = "`limit-reached`, `unknown-event`, `mixed-currencies`"),
        (status = 503, description = "`lock-wait-timeout`, `lock-unavailable`, `strategy-unavailable`, `contended`, \
                                      `busy`: nothing was held, come back after `Retry-After`; \
                                      `outcome-unknown`: it may be held, send the same request again"),
    )
)]
pub(super) async fn place(
    State(state): State<AppState>,
    context: CallContext,
    ApiPath(HoldPath { id }): ApiPath<HoldPath>,
    ApiJson(request): ApiJson<PlaceHold>,
) -> Result<(StatusCode, Json<HoldView>), Problem> {
    let strategy = context.strategy_or(state.default_strategy);
    let span = Span::current();
    span.record("hold.id", id.as_str());
    span.record("strategy", strategy.name());
    let wish = Arc::new(Wish {
        id,
        request,
        strategy,
    });
    let placed = state.inventory.place_hold(&wish, &context).await?;
    let status = if placed.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(placed.view)))
}

/// Turn a hold into tickets.
#[utoipa::path(
    post, path = "/v1/holds/{id}/confirm", tag = "inventory", params(HoldPath),
    responses(
        (status = 200, body = ConfirmedHold, description = "The tickets; again: the same ones"),
        (status = 404, description = "`hold-not-found`"),
        (status = 409, description = "`hold-expired`, `hold-closed`: there are no tickets"),
        (status = 503, description = "`busy`: nothing was done; `outcome-unknown`: there may be tickets, send it again"),
    )
)]
pub(super) async fn confirm(
    State(state): State<AppState>,
    context: CallContext,
    ApiPath(HoldPath { id }): ApiPath<HoldPath>,
) -> Result<Json<ConfirmedHold>, Problem> {
    Span::current().record("hold.id", id.as_str());
    Ok(Json(state.inventory.confirm(&id, &context).await?))
}

/// Give a hold back. A hold that was never placed is closed, so that it never will be.
///
/// After 204 the stock is free again, or owed: it is then given back within moments of its lock being free, whatever
/// happens to this process, and counts as held until then.
#[utoipa::path(
    delete, path = "/v1/holds/{id}", tag = "inventory", params(HoldPath),
    responses(
        (status = 204, description = "Given back, now or before"),
        (status = 409, description = "`hold-confirmed`: it has become tickets"),
        (status = 503, description = "`busy`: nothing was done; `outcome-unknown`: it may be given back, send it again"),
    )
)]
pub(super) async fn release(
    State(state): State<AppState>,
    context: CallContext,
    ApiPath(HoldPath { id }): ApiPath<HoldPath>,
) -> Result<StatusCode, Problem> {
    Span::current().record("hold.id", id.as_str());
    state
        .inventory
        .release(&id, context.strategy_or(state.default_strategy))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
