//! The cluster as this node sees it, and who belongs to it.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use service_kit::{ApiJson, ApiPath, Problem};

use super::Api;
use super::admin::Admin;
use super::body::{AddMember, ClusterBody};
use crate::config::Member;

/// Show the cluster
///
/// This node's own view, at once and without asking the others: also a node without a leader answers.
#[utoipa::path(get, path = "/v1/cluster", tag = "cluster", responses((status = 200, body = ClusterBody)))]
pub(crate) async fn status(State(api): State<Api>) -> Json<ClusterBody> {
    Json(api.service.status().into())
}

/// Add a member
///
/// The member must be running. It receives the log first; with `voter` it votes once it has caught up.
#[utoipa::path(
    post, path = "/v1/cluster/members", tag = "cluster", request_body = AddMember, security(("admin" = [])),
    responses(
        (status = 200, body = ClusterBody), (status = 400, description = "invalid-request"),
        (status = 401, description = "unauthorized"), (status = 403, description = "admin-disabled"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader and others"),
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
    let member = Member {
        id,
        peer_addr,
        client_addr,
    };
    // Through the text, because its parser is where addresses are checked.
    let text = format!("{id}={},{}", member.peer_addr, member.client_addr);
    text.parse::<Member>()
        .map_err(|error| Problem::invalid("", error.to_string()))?;
    api.service.add_learner(member).await?;
    if voter {
        let mut voters = voters(&api);
        voters.insert(id);
        api.service.change_members(voters).await?;
    }
    Ok(Json(api.service.status().into()))
}

/// Remove a member
#[utoipa::path(
    delete, path = "/v1/cluster/members/{id}", tag = "cluster", params(("id" = u64, Path)), security(("admin" = [])),
    responses(
        (status = 200, body = ClusterBody), (status = 401, description = "unauthorized"),
        (status = 403, description = "admin-disabled"), (status = 409, description = "last-member"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader and others"),
    )
)]
pub(crate) async fn remove_member(
    State(api): State<Api>,
    _admin: Admin,
    ApiPath(id): ApiPath<u64>,
) -> Result<Json<ClusterBody>, Problem> {
    let mut voters = voters(&api);
    voters.remove(&id);
    if voters.is_empty() {
        return Err(
            Problem::new(StatusCode::CONFLICT, "last-member").detail("the last voter cannot be removed")
        );
    }
    api.service.change_members(voters).await?;
    Ok(Json(api.service.status().into()))
}

fn voters(api: &Api) -> BTreeSet<u64> {
    let members = api.service.status().members;
    members
        .into_iter()
        .filter(|member| member.voter)
        .map(|member| member.id)
        .collect()
}
