//! A copy of the state to keep elsewhere, and a cluster that goes on from one.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use lock_core::FencingToken;
use serde::Deserialize;
use service_kit::{ApiQuery, Problem};
use utoipa::IntoParams;

use super::Api;
use super::admin::Admin;
use super::body::RestoredBody;
use super::error::refused;
use crate::service::{Backup, TOKEN_MARGIN};

/// The largest backup that is read; it is held in memory while it is checked.
pub(crate) const RESTORE_BYTES_MAX: usize = 512 << 20;

/// Where tokens go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RestoreQuery {
    /// Tokens go on above this one, which is at least the backup's [the backup's plus 2^32 unless given].
    token_floor: Option<u64>,
}

/// Back the state up
///
/// A file with everything that was answered before this request: sessions, locks, the counter of fencing tokens. It is
/// checksummed, and of use to the restore of any cluster.
#[utoipa::path(
    get, path = "/v1/cluster/backup", tag = "cluster", security(("admin" = [])),
    responses(
        (status = 200, content_type = "application/octet-stream", description = "the file"),
        (status = 401, description = "unauthorized"), (status = 403, description = "admin-disabled"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader"),
    )
)]
pub(crate) async fn backup(State(api): State<Api>, _admin: Admin) -> Result<Response, Problem> {
    let file = api.service.backup().await?;
    tracing::info!(bytes = file.len(), "the state was backed up");
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"lock-cluster.backup\"",
        ),
    ];
    Ok((headers, file).into_response())
}

/// Restore a backup
///
/// All fencing tokens from now on are higher than those that the backed-up cluster granted, also after the backup was
/// made. Its sessions and locks are *not* brought back; those of this cluster stay as they are. Restoring again, or
/// into a cluster that was in use, is safe: the counter is only ever raised.
#[utoipa::path(
    post, path = "/v1/cluster/restore", tag = "cluster", security(("admin" = [])), params(RestoreQuery),
    request_body(content_type = "application/octet-stream", description = "the file"),
    responses(
        (status = 200, body = RestoredBody), (status = 400, description = "invalid-backup, invalid-request"),
        (status = 401, description = "unauthorized"), (status = 403, description = "admin-disabled"),
        (status = 409, description = "token-floor-too-high"), (status = 413, description = "body-too-large"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader and others"),
    )
)]
pub(crate) async fn restore(
    State(api): State<Api>,
    _admin: Admin,
    ApiQuery(RestoreQuery { token_floor }): ApiQuery<RestoreQuery>,
    file: Bytes,
) -> Result<Json<RestoredBody>, Problem> {
    let invalid = |error: &dyn std::fmt::Display| {
        Problem::new(StatusCode::BAD_REQUEST, "invalid-backup").detail(error.to_string())
    };
    let backup = tokio::task::spawn_blocking(move || Backup::check(file))
        .await
        .map_err(|_panicked| Problem::internal())?
        .map_err(|error| invalid(&error))?;
    let last = backup.last_token.get();
    let floor = token_floor.unwrap_or(last.saturating_add(TOKEN_MARGIN));
    if floor < last {
        return Err(Problem::invalid(
            "/token_floor",
            format!("must be {last} or higher: tokens up to there were granted before the backup"),
        ));
    }
    let raised = api.service.raise_token_floor(FencingToken::new(floor)).await?;
    let floor = raised.map_err(refused)?;
    tracing::warn!(%floor, backup.last_token = last, "a backup was restored: tokens go on above its own");
    Ok(Json(RestoredBody {
        token_floor: floor,
        backup_last_token: backup.last_token,
        sessions_dropped: backup.sessions,
        locks_dropped: backup.locks,
    }))
}
