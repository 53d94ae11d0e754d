//! The client port: HTTP and JSON in, commands out, answers back.
//!
//! Nothing is decided here. A handler parses its request into the vocabulary of `lock-core`, hands one command to
//! the [`LockService`], and turns the reply into a status. Every error is a problem (RFC 9457), also those of the
//! framework; `error.rs` is the one place where a refusal meets its status.
//!
//! | method, path | answer |
//! |---|---|
//! | `PUT /v1/sessions/{id}` | 201, again 200 |
//! | `POST /v1/sessions/{id}/keep-alive` | 200 |
//! | `DELETE /v1/sessions/{id}` | 204 |
//! | `POST /v1/sessions/{id}/acquisitions` | 201 once granted; the request waits as long as the acquisition does |
//! | `DELETE /v1/sessions/{id}/acquisitions/{acquire_id}` | 204 |
//! | `GET /v1/pipe`, upgraded | the five calls above in binary, many at once: see [`lock_pipe`] |
//! | `GET /v1/locks`, `GET /v1/locks/{name}` | 200, as of now (ReadIndex) |
//! | `POST /v1/locks/{name}/break` | 200 (administrators) |
//! | `GET /v1/events` | server-sent events |
//! | `GET /v1/cluster` | 200, from any node |
//! | `POST /v1/cluster/members`, `POST /v1/cluster/members/{id}/promote`, `DELETE /v1/cluster/members/{id}` | 200 (administrators) |
//! | `GET /v1/cluster/backup`, `POST /v1/cluster/restore` | 200 (administrators) |
//!
//! Where the node was given a client token, all of these want it (`guest`); an administrator's passes, too.
//!
//! Hanging up is a request of its own: the server drops the handler of a connection that was closed, the handler
//! drops the service's future, and that gives the place in the queue back.
//!
//! Waiting acquires are many and long. They are bounded below the number of requests in flight, and below that of
//! connections (`lasting`), so that a full queue never keeps a session from being kept alive.

mod admin;
mod backup;
mod bearer;
mod body;
mod calls;
mod cluster;
mod error;
mod events;
mod feed;
mod guest;
mod lasting;
mod locks;
mod metrics;
mod openapi;
mod pipe;
mod sessions;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post, put};
use axum::{Router, middleware};
use service_kit::{Faults, Metrics, Readiness, ServiceInfo, finish, limits};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::lasting::Lasting;
use self::pipe::Pipes;
use crate::config::Secret;
use crate::service::LockService;

/// Requests worked on at once.
const IN_FLIGHT_MAX: usize = 16_384;
/// Acquires among them that wait. The rest is for those that keep sessions alive and give locks back.
const WAITING_MAX: usize = 12_288;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Api {
    service: LockService,
    tokens: Arc<Tokens>,
    waiting: Arc<Semaphore>,
    lasting: Lasting,
    pipes: Pipes,
    /// Ends the event streams and the pipes: they have no end of their own, and would hold the shutdown up.
    closing: CancellationToken,
}

/// What callers are known by.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// Without one, everybody is a client.
    pub(crate) client: Option<Secret>,
    /// Without one, nobody is an administrator.
    pub(crate) admin: Option<Secret>,
}

impl Api {
    pub(crate) fn new(service: LockService, tokens: Tokens, closing: CancellationToken) -> Self {
        let tokens = Arc::new(tokens);
        Self {
            service,
            tokens,
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            lasting: Lasting::new(limits::connections_max()),
            pipes: Pipes::default(),
            closing,
        }
    }

    /// As many waiting acquires as there may be, until the permit is dropped.
    #[cfg(test)]
    pub(crate) fn fill_up(&self) -> tokio::sync::OwnedSemaphorePermit {
        let all = u32::try_from(WAITING_MAX).unwrap();
        self.waiting.clone().try_acquire_many_owned(all).unwrap()
    }

    /// The answer to the only call of a pipe.
    #[cfg(test)]
    pub(crate) async fn over_a_pipe(&self, call: lock_pipe::Call) -> lock_pipe::Answer {
        pipe::answer(self, &lasting::Shared::default(), call).await
    }

    /// As many waits and streams as there may be.
    #[cfg(test)]
    pub(crate) fn fill_connections(&self) -> Vec<lasting::Last> {
        std::iter::from_fn(|| self.lasting.wait().ok()).collect()
    }

    /// Returns when the last pipe has ended; they end when `closing` falls.
    pub(crate) async fn pipes_closed(&self) {
        self.pipes.closed().await;
    }
}

/// Everything a node answers on its client port.
pub(crate) fn router(api: Api, faults: Faults) -> Router {
    let instance = format!("lock-node-{}", api.service.status().id);
    let metrics = Metrics::new("lock-node", &instance);
    metrics::register(&metrics, &api.service);
    api.pipes.register(&metrics);
    let info = ServiceInfo::new("lock-node", instance, openapi::document()).in_flight_max(IN_FLIGHT_MAX);
    let readiness = Readiness::new().check("leader", {
        let service = api.service.clone();
        move || {
            let led = service.is_led();
            async move { led.then_some(()).ok_or_else(|| "no leader is known".to_owned()) }
        }
    });
    finish(routes(api), info, readiness, metrics, faults)
}

fn routes(api: Api) -> Router {
    Router::new()
        .route(
            "/v1/sessions/{session_id}",
            put(sessions::open).delete(sessions::close),
        )
        .route("/v1/sessions/{session_id}/keep-alive", post(sessions::keep_alive))
        .route("/v1/sessions/{session_id}/acquisitions", post(sessions::acquire))
        .route(
            "/v1/sessions/{session_id}/acquisitions/{acquire_id}",
            delete(sessions::release),
        )
        .route(lock_pipe::PATH, get(pipe::open))
        .route("/v1/locks", get(locks::list))
        // A wildcard matches one character at least; without this, the empty name would be an unknown path.
        .route("/v1/locks/", get(locks::empty_name).post(locks::empty_name))
        .route("/v1/locks/{*name}", get(locks::show).post(locks::break_lock))
        .route("/v1/events", get(events::stream))
        .route("/v1/cluster", get(cluster::status))
        .route("/v1/cluster/members", post(cluster::add_member))
        .route("/v1/cluster/members/{id}", delete(cluster::remove_member))
        .route("/v1/cluster/members/{id}/promote", post(cluster::promote_member))
        .route("/v1/cluster/backup", get(backup::backup))
        .route(
            "/v1/cluster/restore",
            post(backup::restore).layer(DefaultBodyLimit::max(backup::RESTORE_BYTES_MAX)),
        )
        .layer(middleware::from_fn_with_state(api.clone(), guest::admit))
        .with_state(api)
}
