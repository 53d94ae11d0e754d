//! The fault board: a point belongs to a service, and every instance of the service has it.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use http::uri::PathAndQuery;
use serde::{Deserialize, Serialize};
use service_kit::{ApiPath, Problem};
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

use super::AppState;
use crate::upstream::instance::Instance;
use crate::upstream::parcel::Parcel;

/// How long one instance may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_LEN_MAX: usize = 1024 * 1024;

/// One instance's board.
#[derive(Debug, Deserialize)]
struct Board {
    enabled: bool,
    points: Vec<Point>,
}

#[derive(Debug, Deserialize)]
struct Point {
    point: String,
    #[serde(default)]
    rule: Option<serde_json::Value>,
    #[serde(default)]
    hits: u64,
    #[serde(default)]
    fired: u64,
}

/// A point over all instances that have it.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct PointView {
    /// `<service>.<place>`.
    point: String,
    /// What is armed, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    rule: Option<serde_json::Value>,
    /// How often it was reached, all instances together.
    hits: u64,
    /// How often something happened there.
    fired: u64,
    /// How many instances have it, and on how many of them it is armed.
    instances: u64,
    armed: u64,
}

/// The fault points of the whole suite.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct BoardView {
    /// Whether any process lets faults be injected.
    enabled: bool,
    /// All points, by name.
    points: Vec<PointView>,
    /// Instances that did not answer.
    unreachable: Vec<String>,
}

/// Show the effective state of all fault points.
#[utoipa::path(get, path = "/v1/faults", tag = "boxoffice", responses((status = 200, body = BoardView)))]
pub(super) async fn list(State(state): State<AppState>) -> Json<BoardView> {
    let upstreams = &state.upstreams;
    let instances: Vec<&Arc<Instance>> = upstreams
        .pools()
        .into_iter()
        .flat_map(|pool| pool.instances())
        .chain(upstreams.nodes.nodes())
        .collect();
    let parcel = Parcel::get(PathAndQuery::from_static("/v1/faults"));
    let answers = join_all(instances.iter().map(|instance| ask(instance, parcel.clone()))).await;
    let mut board = BoardView::default();
    let mut points: BTreeMap<String, PointView> = BTreeMap::new();
    for (instance, answer) in instances.iter().zip(answers) {
        let Some(theirs) = answer
            .ok()
            .and_then(|(_, body)| serde_json::from_slice::<Board>(&body).ok())
        else {
            board.unreachable.push(instance.url.clone());
            continue;
        };
        board.enabled |= theirs.enabled;
        for point in theirs.points {
            let ours = points.entry(point.point.clone()).or_default();
            ours.point = point.point;
            ours.hits += point.hits;
            ours.fired += point.fired;
            ours.instances += 1;
            ours.armed += u64::from(point.rule.is_some());
            ours.rule = ours.rule.take().or(point.rule);
        }
    }
    board.points = points.into_values().collect();
    Json(board)
}

/// Arm a fault point, on every instance that has it.
#[utoipa::path(
    put, path = "/v1/faults/{*point}", tag = "boxoffice", params(("point" = String, Path)),
    responses((status = 200, description = "Armed"), (status = 404, description = "`unknown-fault-point`"))
)]
pub(super) async fn arm(
    state: State<AppState>,
    point: ApiPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    everywhere(state, point, request).await
}

/// Disarm a fault point, on every instance that has it.
#[utoipa::path(
    delete, path = "/v1/faults/{*point}", tag = "boxoffice", params(("point" = String, Path)),
    responses((status = 204, description = "Disarmed"), (status = 404, description = "`unknown-fault-point`"))
)]
pub(super) async fn disarm(
    state: State<AppState>,
    point: ApiPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    everywhere(state, point, request).await
}

/// Sends the request to every instance of the service that the point's name begins with. One that refuses
/// speaks for all; one that is away is armed by nobody, and the answer says so.
async fn everywhere(
    State(state): State<AppState>,
    ApiPath(point): ApiPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    let instances = owners(&state, &point)?;
    let parcel = Parcel::take(request).await?;
    let mut first = None;
    let mut away = Vec::new();
    let answers = join_all(instances.iter().map(|instance| ask(instance, parcel.clone()))).await;
    for (instance, answer) in instances.iter().zip(answers) {
        match answer {
            Ok((head, body)) if head.status.is_success() => {
                first.get_or_insert((head, body));
            }
            Ok((head, body)) => return Ok(Response::from_parts(head, body.into())),
            Err(()) => away.push(instance.url.clone()),
        }
    }
    match first {
        Some((head, body)) if away.is_empty() => Ok(Response::from_parts(head, body.into())),
        _ => Err(Problem::busy("instances-unavailable", Duration::from_secs(1))
            .detail(format!("not at {}", away.join(", ")))
            .with("unreachable", away)),
    }
}

fn owners<'s>(state: &'s AppState, point: &str) -> Result<&'s [Arc<Instance>], Problem> {
    let service = point.split('.').next().unwrap_or_default();
    let upstreams = &state.upstreams;
    if matches!(service, "raft" | "lock") {
        return Ok(upstreams.nodes.nodes());
    }
    let pool = upstreams.pools().into_iter().find(|pool| pool.name() == service);
    pool.map(|pool| pool.instances()).ok_or_else(|| {
        let known: Vec<_> = upstreams
            .pools()
            .iter()
            .map(|pool| pool.name())
            .chain(["raft", "lock"])
            .collect();
        Problem::new(StatusCode::NOT_FOUND, "unknown-fault-point")
            .detail(format!(
                "{point:?} begins with no service's name; a point is <service>.<place>"
            ))
            .with("known", known)
    })
}

async fn ask(instance: &Instance, parcel: Parcel) -> Result<(axum::http::response::Parts, bytes::Bytes), ()> {
    let response = instance
        .send(parcel, ANSWER_WITHIN)
        .await
        .map_err(drop)?
        .into_response();
    let (mut head, body) = response.into_parts();
    let body = to_bytes(body, ANSWER_LEN_MAX).await.map_err(drop)?;
    head.headers.remove(http::header::CONTENT_LENGTH); // axum counts again
    Ok((head, body))
}
