//! Sessions, and what they hold, in JSON: a request becomes a [`Call`], and what was done becomes a status and a body.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lock_core::{AcquireId, SessionId};
use lock_pipe::{Call, Done};
use service_kit::{ApiJson, ApiPath, Problem};

use super::Api;
use super::body::{Acquire, AliveBody, GrantedBody, KeepAlive, OpenSession, OptionalJson, SessionBody};
use super::error::unexpected;

/// Open a session
///
/// The client chooses the id, a UUID. The same id again answers 200 and keeps the session alive.
#[utoipa::path(
    put, path = "/v1/sessions/{session_id}", tag = "sessions",
    params(("session_id" = uuid::Uuid, Path)), request_body = OpenSession,
    responses(
        (status = 201, body = SessionBody), (status = 200, body = SessionBody, description = "it was open already"),
        (status = 400, description = "invalid-request"), (status = 421, description = "not-leader, with `leader`"),
        (status = 429, description = "too-many-sessions"), (status = 503, description = "no-leader and others, with Retry-After"),
    )
)]
pub(crate) async fn open(
    State(api): State<Api>,
    ApiPath(session_id): ApiPath<SessionId>,
    ApiJson(OpenSession { ttl_ms: ttl, label }): ApiJson<OpenSession>,
) -> Result<(StatusCode, Json<SessionBody>), Problem> {
    let open = Call::Open {
        session_id,
        ttl,
        label,
    };
    match api.carry_out(open).await? {
        Done::Opened { ttl: ttl_ms, created } => {
            let status = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((status, Json(SessionBody { session_id, ttl_ms })))
        }
        other => Err(unexpected(&other)),
    }
}

/// Keep a session alive
///
/// The body may be left out.
#[utoipa::path(
    post, path = "/v1/sessions/{session_id}/keep-alive", tag = "sessions",
    params(("session_id" = uuid::Uuid, Path)), request_body = KeepAlive,
    responses(
        (status = 200, body = AliveBody), (status = 410, description = "session-expired"),
        (status = 421, description = "not-leader"), (status = 503, description = "no-leader and others"),
    )
)]
pub(crate) async fn keep_alive(
    State(api): State<Api>,
    ApiPath(session_id): ApiPath<SessionId>,
    OptionalJson(KeepAlive { acknowledged }): OptionalJson<KeepAlive>,
) -> Result<Json<AliveBody>, Problem> {
    let keep_alive = Call::KeepAlive {
        session_id,
        acknowledged,
    };
    match api.carry_out(keep_alive).await? {
        Done::KeptAlive { ttl: ttl_ms, broken } => Ok(Json(AliveBody { ttl_ms, broken })),
        other => Err(unexpected(&other)),
    }
}

/// Close a session
///
/// Everything it holds is released, every place in a queue given up.
#[utoipa::path(
    delete, path = "/v1/sessions/{session_id}", tag = "sessions", params(("session_id" = uuid::Uuid, Path)),
    responses(
        (status = 204, description = "closed, now or before"), (status = 421, description = "not-leader"),
        (status = 503, description = "no-leader and others"),
    )
)]
pub(crate) async fn close(
    State(api): State<Api>,
    ApiPath(session_id): ApiPath<SessionId>,
) -> Result<StatusCode, Problem> {
    match api.carry_out(Call::Close { session_id }).await? {
        Done::Closed => Ok(StatusCode::NO_CONTENT),
        other => Err(unexpected(&other)),
    }
}

/// Acquire locks
///
/// All of the names or none. The request waits as long as the acquisition does; hanging up gives it up. The same
/// `acquire_id` again gives the same answer, from any node that leads, until the client acknowledges it.
#[utoipa::path(
    post, path = "/v1/sessions/{session_id}/acquisitions", tag = "sessions",
    params(("session_id" = uuid::Uuid, Path)), request_body = Acquire,
    responses(
        (status = 201, body = GrantedBody),
        (status = 409, description = "lock-held (wait_ms 0), already-released, already-acknowledged, names-differ"),
        (status = 410, description = "session-expired"), (status = 421, description = "not-leader"),
        (status = 429, description = "too-many-unacknowledged, too-many-waiters, …"),
        (status = 503, description = "lock-wait-timeout, no-leader and others"),
    )
)]
pub(crate) async fn acquire(
    State(api): State<Api>,
    ApiPath(session_id): ApiPath<SessionId>,
    ApiJson(Acquire {
        acquire_id,
        names,
        wait_ms,
    }): ApiJson<Acquire>,
) -> Result<(StatusCode, Json<GrantedBody>), Problem> {
    let span = tracing::Span::current();
    // Escaped: a name may contain anything, and a log line must stay one.
    span.record("lock.name", tracing::field::debug(names.to_string()));
    let acquire = Call::Acquire {
        session_id,
        acquire_id,
        names,
        wait: wait_ms,
    };
    let _lasting = api.lasting.wait()?;
    match api.carry_out(acquire).await? {
        Done::Granted { fencing_token, names } => {
            span.record("fencing_token", fencing_token.get());
            let granted = GrantedBody {
                acquire_id,
                fencing_token,
                names,
            };
            Ok((StatusCode::CREATED, Json(granted)))
        }
        other => Err(unexpected(&other)),
    }
}

/// Release
///
/// Gives back what the acquisition holds, or its place in line. An id that was never seen is closed for good: an
/// acquire that was overtaken on its way cannot be granted later.
#[utoipa::path(
    delete, path = "/v1/sessions/{session_id}/acquisitions/{acquire_id}", tag = "sessions",
    params(("session_id" = uuid::Uuid, Path), ("acquire_id" = u64, Path)),
    responses(
        (status = 204, description = "released, now or before"), (status = 404, description = "not-held"),
        (status = 410, description = "session-expired"), (status = 421, description = "not-leader"),
        (status = 503, description = "no-leader and others"),
    )
)]
pub(crate) async fn release(
    State(api): State<Api>,
    ApiPath((session_id, acquire_id)): ApiPath<(SessionId, AcquireId)>,
) -> Result<StatusCode, Problem> {
    let release = Call::Release {
        session_id,
        acquire_id,
    };
    match api.carry_out(release).await? {
        Done::Released => Ok(StatusCode::NO_CONTENT),
        other => Err(unexpected(&other)),
    }
}
