//! The node's end of the pipe: the calls of `sessions.rs` in binary, many at once over one connection.
//!
//! `GET /v1/pipe` with the right `Upgrade` is answered 101, and from then on the connection belongs to a task of its
//! own (`connection`). Nothing is decided differently: both ways ask `Api::carry_out`. What the pipe saves is the
//! wrapping. A request is one small frame instead of a page of headers; the calls of one client share a task, so that
//! one wake-up takes in all that has arrived and one write sends all that was decided.
//!
//! A pipe keeps the seat of the connection that it was: while no call is under way it may lose it to a newcomer.
//!
//! The words and the frames are the crate [`lock_pipe`]'s, because the client speaks them too.

mod connection;
mod metrics;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use lock_pipe::PROTOCOL;
use service_kit::{Metrics, Problem, Seat};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

#[cfg(test)]
pub(super) use self::connection::answer;
use self::metrics::PipeMetrics;
use super::Api;

/// The pipes of a node. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Pipes {
    tasks: TaskTracker,
    metrics: PipeMetrics,
}

impl Pipes {
    pub(super) fn register(&self, metrics: &Metrics) {
        self.metrics.register(metrics);
    }

    pub(super) async fn closed(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Open a pipe
///
/// Upgrades the connection to `lock-pipe/1`: the calls of a session in binary frames, many at once.
#[utoipa::path(
    get, path = "/v1/pipe", tag = "sessions",
    responses(
        (status = 101, description = "the connection is a pipe from now on"),
        (status = 426, description = "upgrade-required: another protocol, or none, was asked for"),
    )
)]
pub(crate) async fn open(State(api): State<Api>, mut request: Request) -> Response {
    let asked = asks_for_pipe(request.headers());
    let extensions = request.extensions_mut();
    let place = extensions
        .remove::<OnUpgrade>()
        .zip(extensions.remove::<Arc<Seat>>());
    let Some((upgrade, seat)) = place.filter(|_| asked) else {
        let problem = Problem::new(StatusCode::UPGRADE_REQUIRED, "upgrade-required").detail(format!(
            "here begins a pipe: Connection: upgrade, Upgrade: {PROTOCOL}"
        ));
        return with_upgrade(problem.into_response());
    };
    let tasks = api.pipes.tasks.clone();
    tasks.spawn(async move {
        let upgraded = tokio::select! {
            upgraded = upgrade => upgraded,
            () = api.closing.cancelled() => return,
        };
        // The server reads from plain sockets; anything else would be another server's.
        match upgraded.map(|upgraded| upgraded.downcast::<TokioIo<TcpStream>>()) {
            Ok(Ok(parts)) => connection::serve(api, &seat, parts.io.into_inner(), &parts.read_buf).await,
            Ok(Err(_)) => tracing::error!("a pipe's connection is no socket"),
            Err(error) => tracing::debug!(%error, "a connection ended before it was a pipe"),
        }
    });
    with_upgrade(StatusCode::SWITCHING_PROTOCOLS.into_response())
}

/// Both headers are lists, and their words have no case (RFC 9110 §7.6.1, §7.8).
fn asks_for_pipe(headers: &HeaderMap) -> bool {
    let lists = |name: header::HeaderName, wanted: &str| {
        let values = headers
            .get_all(name)
            .into_iter()
            .filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    lists(header::CONNECTION, "upgrade") && lists(header::UPGRADE, PROTOCOL)
}

fn with_upgrade(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    response
}
