//! Rounds over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use service_kit::{ApiJson, ApiPath, Problem};

use super::AppState;
use crate::domain::round::{RoundList, RoundView, StartRound};

/// Run one round in the background: a burst of buyers, a retry storm, an audit, a verdict.
#[utoipa::path(
    post, path = "/v1/rounds", tag = "boxoffice", request_body = StartRound,
    responses(
        (status = 202, body = RoundView, description = "Begun; `Location` says where to look"),
        (status = 400, description = "`invalid-request`, `unknown-strategy`"),
        (status = 409, description = "`round-running`: one at a time"),
    )
)]
pub(super) async fn start(
    State(state): State<AppState>,
    ApiJson(request): ApiJson<StartRound>,
) -> Result<impl IntoResponse, Problem> {
    let round = state.rounds.start(request)?;
    let location = format!("/v1/rounds/{}", round.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(round)))
}

/// List the last rounds, newest first.
#[utoipa::path(get, path = "/v1/rounds", tag = "boxoffice", responses((status = 200, body = RoundList)))]
pub(super) async fn list(State(state): State<AppState>) -> Json<RoundList> {
    Json(RoundList {
        rounds: state.rounds.list(),
    })
}

/// Show one round: how far it has come, and what it came to.
#[utoipa::path(
    get, path = "/v1/rounds/{id}", tag = "boxoffice", params(("id" = String, Path)),
    responses((status = 200, body = RoundView), (status = 404, description = "`not-found`"))
)]
pub(super) async fn show(
    State(state): State<AppState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<RoundView>, Problem> {
    let round = state.rounds.get(&id);
    round
        .map(Json)
        .ok_or_else(|| Problem::not_found(format!("there is no round {id} (any more)")))
}
