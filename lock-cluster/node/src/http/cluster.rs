//! The cluster as this node sees it, and who belongs to it.

use axum::Json;
use axum::extract::State;
use service_kit::{ApiJson, ApiPath, Problem};

use super::Api;
use super::admin::Admin;
use super::body::{AddMember, ClusterBody};
use crate::config::{ConfigError, Member};

/// Show the cluster
///
/// This node's own view, at once and without asking the others: also a node without a leader answers.
#[utoipa::path(get, path = "/v1/cluster", tag = "cluster", responses((status = 200, body = ClusterBody)))]
pub(crate) async fn status(State(api): State<Api>) -> Json<ClusterBody> {
    Json(api.service.status().into())
}

/// Add a member
///
/// The member must be running. It receives the log first; with `voter` it votes once it has caught up. Asking again is
/// no error.
#[utoipa::path(
    post, path = "/v1/cluster/members", tag = "cluster", request_body = AddMember, security(("admin" = [])),
    responses(
        (status = 200, body = ClusterBody), (status = 400, description = "invalid-request"),
        (status = 401, description = "unauthorized"), (status = 403, description = "admin-disabled"),
        (status = 409, description = "membership-refused"), (status = 421, description = "not-leader"),
        (status = 503, description = "no-leader, membership-pending and others"),
    )
)]
pub(crate) async fn add_member(
    State(api): State<Api>,
    _admin: Admin,
    ApiJson(AddMember {
        id,
        peer_addr,
        client_addr,
        voter,
    }): ApiJson<AddMember>,
) -> Result<Json<ClusterBody>, Problem> {
    // Through the text, because its parser is where addresses are checked.
    let member: Member = format!("{id}={peer_addr},{client_addr}")
        .parse()
        .map_err(|error: ConfigError| Problem::invalid("", error.to_string()))?;
    api.service.add_learner(member).await?;
    if voter {
        api.service.promote(id).await?;
    }
    Ok(Json(api.service.status().into()))
}

/// Promote a member
///
/// Makes a voter of one that only receives the log, once it has caught up. Asking again is no error.
#[utoipa::path(
    post, path = "/v1/cluster/members/{id}/promote", tag = "cluster", params(("id" = u64, Path)),
    security(("admin" = [])),
    responses(
        (status = 200, body = ClusterBody), (status = 401, description = "unauthorized"),
        (status = 403, description = "admin-disabled"), (status = 409, description = "membership-refused"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader, membership-pending and others"),
    )
)]
pub(crate) async fn promote_member(
    State(api): State<Api>,
    _admin: Admin,
    ApiPath(id): ApiPath<u64>,
) -> Result<Json<ClusterBody>, Problem> {
    api.service.promote(id).await?;
    Ok(Json(api.service.status().into()))
}

/// Remove a member
///
/// Voter or not, also one that is gone; the leader may be asked to remove itself, and hands over then. Refused if too
/// few of the others answer to go on without it. If one of them dies in that moment, the answer says for whom the change
/// waits, and the leader finishes it. Asking again is no error.
#[utoipa::path(
    delete, path = "/v1/cluster/members/{id}", tag = "cluster", params(("id" = u64, Path)), security(("admin" = [])),
    responses(
        (status = 200, body = ClusterBody), (status = 401, description = "unauthorized"),
        (status = 403, description = "admin-disabled"), (status = 409, description = "last-member, membership-refused"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader, membership-pending and others"),
    )
)]
pub(crate) async fn remove_member(
    State(api): State<Api>,
    _admin: Admin,
    ApiPath(id): ApiPath<u64>,
) -> Result<Json<ClusterBody>, Problem> {
    api.service.remove_member(id).await?;
    Ok(Json(api.service.status().into()))
}
