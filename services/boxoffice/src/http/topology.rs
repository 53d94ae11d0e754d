//! Who is there.

use axum::Json;
use axum::extract::State;

use super::AppState;
use crate::domain::topology::Topology;

/// Show the instances of all services and the nodes of the lock cluster, as the prober last saw them.
#[utoipa::path(get, path = "/v1/topology", tag = "boxoffice", responses((status = 200, body = Topology)))]
pub(super) async fn show(State(state): State<AppState>) -> Json<Topology> {
    let mut now = state.topology.borrow().clone();
    // A refused connection is known at once, not with the next probe.
    now.services = state.upstreams.pools().iter().map(|pool| pool.view()).collect();
    Json(now)
}
