//! Sessions, and what they hold.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lock_core::{AcquireAnswer, AcquireId, Command, Refusal, Reply, SessionId};
use service_kit::{ApiJson, ApiPath, Problem};

use super::Api;
use super::body::{Acquire, AliveBody, GrantedBody, KeepAlive, OpenSession, OptionalJson, SessionBody};
use super::error::{not_granted, refused, unexpected};

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
    match api
        .service
        .propose(Command::OpenSession {
            session_id,
            ttl,
            label,
        })
        .await?
    {
        Reply::SessionOpened { ttl: ttl_ms, created } => {
            let status = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((status, Json(SessionBody { session_id, ttl_ms })))
        }
        Reply::Refused(refusal) => Err(refused(refusal)),
        reply => Err(unexpected(&reply)),
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
    match api
        .service
        .propose(Command::KeepAlive {
            session_id,
            acknowledged,
        })
        .await?
    {
        Reply::KeptAlive { ttl: ttl_ms, broken } => Ok(Json(AliveBody { ttl_ms, broken })),
        Reply::Refused(refusal) => Err(refused(refusal)),
        reply => Err(unexpected(&reply)),
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
    match api.service.propose(Command::CloseSession { session_id }).await? {
        Reply::SessionClosed => Ok(StatusCode::NO_CONTENT),
        Reply::Refused(refusal) => Err(refused(refusal)),
        reply => Err(unexpected(&reply)),
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
    // Held while waiting and no longer; see the module on why waits have a bound of their own.
    let Ok(_waiting) = api.waiting.try_acquire() else {
        let later = Duration::from_secs(1);
        return Err(Problem::busy("overloaded", later).detail("too many acquires wait at this node"));
    };
    let answer = api
        .service
        .acquire(session_id, acquire_id, names, wait_ms)
        .await?;
    match answer.map_err(refused)? {
        AcquireAnswer::Granted { fencing_token, names } => {
            span.record("fencing_token", fencing_token.get());
            let granted = GrantedBody {
                acquire_id,
                fencing_token,
                names,
            };
            Ok((StatusCode::CREATED, Json(granted)))
        }
        answer => Err(not_granted(&answer)),
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
    match api
        .service
        .propose(Command::Release {
            session_id,
            acquire_id,
        })
        .await?
    {
        Reply::Released => Ok(StatusCode::NO_CONTENT),
        // The client said that it is done with this id, and asks to be done with it: so it is.
        Reply::Refused(Refusal::Acknowledged) => Ok(StatusCode::NO_CONTENT),
        Reply::Refused(refusal) => Err(refused(refusal)),
        reply => Err(unexpected(&reply)),
    }
}
