//! Looking at locks, and breaking them.
//!
//! A name is whatever follows `/v1/locks/`, percent-decoded once and otherwise literal: `a/../b` is not `b`, and
//! a `%2F` is a slash like any other. Only the last step of a break is told from the name, and it is looked for
//! in the path as it was sent: `a%2Fbreak` is a lock, `a/break` breaks one.
//!
//! Two names cannot be in a path, encoded or not: URL libraries resolve `.` and `..` before anything is sent. So a
//! name may also be a query: `GET /v1/locks?name=..`, `POST /v1/locks/break?name=..`.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use lock_core::{Command, LockName, LockState, Reply};
use serde::Deserialize;
use service_kit::{ApiJson, ApiPath, ApiQuery, Problem};
use utoipa::IntoParams;

use super::Api;
use super::admin::Admin;
use super::body::{Break, BrokenBody, LockBody, LocksBody};
use super::error::not_done;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;
/// Waiters listed of each lock. The state is looked at under the lock that applying the log needs too: what is listed
/// must be bounded, and a thousand locks may have four thousand waiters each.
const WAITERS_MAX: usize = 100;

/// Which locks to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only names that begin with this.
    #[serde(default)]
    prefix: String,
    /// Only the lock with exactly this name.
    name: Option<String>,
    /// At most this many, 1 to 1000 (100 unless given).
    limit: Option<usize>,
}

/// The name of the lock to break, where the path is `/v1/locks/break`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BreakQuery {
    /// For names that no path can carry: `.` and `..`.
    name: Option<String>,
}

/// List locks
///
/// Those that are held or waited for, in the order of their names. Linearizable: as of now, not as of some node.
#[utoipa::path(
    get, path = "/v1/locks", tag = "locks", params(ListQuery),
    responses(
        (status = 200, body = LocksBody), (status = 400, description = "invalid-request"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader"),
    )
)]
pub(crate) async fn list(
    State(api): State<Api>,
    ApiQuery(ListQuery { prefix, name, limit }): ApiQuery<ListQuery>,
) -> Result<Json<LocksBody>, Problem> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(
            "/limit",
            format!("must be 1 to {LIMIT_MAX}, not {limit}"),
        ));
    }
    let locks = match name.as_deref().map(parse).transpose()? {
        None => {
            let read = |state: &LockState| state.locks_in_brief(&prefix, limit, WAITERS_MAX);
            api.service.read(read).await?
        }
        Some(name) => {
            let read = |state: &LockState| state.lock_in_brief(name.as_str(), WAITERS_MAX);
            api.service.read(read).await?.into_iter().collect()
        }
    };
    Ok(Json(LocksBody {
        locks: locks.into_iter().map(LockBody::from).collect(),
    }))
}

/// Show a lock
///
/// Every name is a lock; one that nobody holds or wants has neither holder nor waiters. Linearizable.
#[utoipa::path(
    get, path = "/v1/locks/{name}", tag = "locks",
    params(("name" = String, Path, description = "1 to 256 bytes; slashes need no encoding")),
    responses(
        (status = 200, body = LockBody), (status = 400, description = "invalid-request"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader"),
    )
)]
pub(crate) async fn show(
    State(api): State<Api>,
    ApiPath(name): ApiPath<String>,
) -> Result<Json<LockBody>, Problem> {
    let name = parse(&name)?;
    let read = |state: &LockState| state.lock_in_brief(name.as_str(), WAITERS_MAX);
    let lock = api.service.read(read).await?;
    let free = || LockBody {
        name: name.to_string(),
        holder: None,
        waiters: Vec::new(),
        waiters_total: 0,
    };
    Ok(Json(lock.map_or_else(free, LockBody::from)))
}

/// Break a lock
///
/// Takes it from the holder with this token, and from nobody else. Its waiters move up; the holder hears of it
/// with its next keep-alive, and its token is refused by storage that has seen a higher one.
#[utoipa::path(
    post, path = "/v1/locks/{name}/break", tag = "locks", params(("name" = String, Path), BreakQuery),
    request_body = Break, security(("admin" = [])),
    responses(
        (status = 200, body = BrokenBody), (status = 401, description = "unauthorized"),
        (status = 403, description = "admin-disabled"), (status = 409, description = "stale-fencing-token"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader and others"),
    )
)]
pub(crate) async fn break_lock(
    State(api): State<Api>,
    uri: Uri,
    ApiPath(rest): ApiPath<String>,
    ApiQuery(query): ApiQuery<BreakQuery>,
    _admin: Admin,
    ApiJson(Break { fencing_token }): ApiJson<Break>,
) -> Result<Json<BrokenBody>, Problem> {
    let name = match rest.strip_suffix("/break") {
        Some(name) if uri.path().ends_with("/break") => parse(name)?,
        None if rest == "break" => parse(&query.name.unwrap_or_default())?,
        _ => return Err(no_such_action(&uri)),
    };
    match api
        .service
        .propose(Command::Break { name, fencing_token })
        .await?
    {
        Reply::Broken {
            session_id,
            acquire_id,
            names,
        } => Ok(Json(BrokenBody {
            session_id,
            acquire_id,
            names,
        })),
        other => Err(not_done(other)),
    }
}

/// `/v1/locks/` with nothing behind it.
pub(crate) async fn empty_name() -> Problem {
    parse("").err().unwrap_or_else(Problem::internal)
}

fn parse(name: &str) -> Result<LockName, Problem> {
    LockName::parse(name).map_err(|error| Problem::invalid("/name", error.to_string()))
}

fn no_such_action(uri: &Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed").detail(format!(
        "POST is not possible at {}; a lock is broken at …/break",
        uri.path()
    ))
}
