//! [`finish`]: from a service's routes to a whole service.
//!
//! Adds what every service owes the others (health, metrics, OpenAPI, fault board, problems for unknown paths
//! and methods) and wraps the service's own routes in one layer that sees each request from its first to its
//! last moment. That layer, `around`, in this order: refuse when too many are in flight, open the span, run
//! the handler, fill in what a problem still lacks, count, and, where a fault asked for it, lose the answer.
//!
//! Health and metrics stay outside of the in-flight bound: an overloaded service must still be able to say so.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::{Instrument as _, Span, field::Empty};

use crate::{
    context::ReplyFate,
    faults::Faults,
    health::Readiness,
    metrics::Metrics,
    problem::{self, Problem},
};

/// Requests worked on at once, unless a service says otherwise; the next one is told to come back.
pub const IN_FLIGHT_MAX: usize = 4096;
/// Names the instance that answered, so that one can see the balancing.
const SERVED_BY: HeaderName = HeaderName::from_static("served-by");

/// Who a service is.
#[derive(Clone)]
pub struct ServiceInfo {
    /// "inventory".
    pub name: String,
    /// "inventory-1".
    pub instance: String,
    /// The version of the program.
    pub version: String,
    /// What `/openapi.json` shows.
    pub openapi: utoipa::openapi::OpenApi,
    /// Requests worked on at once.
    pub in_flight_max: usize,
    /// Whether `/v1/faults` is this process's own board.
    pub fault_board: bool,
}

impl ServiceInfo {
    /// A service of this suite's version.
    pub fn new(
        name: impl Into<String>,
        instance: impl Into<String>,
        openapi: utoipa::openapi::OpenApi,
    ) -> Self {
        Self {
            name: name.into(),
            instance: instance.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            openapi,
            in_flight_max: IN_FLIGHT_MAX,
            fault_board: true,
        }
    }

    /// A service whose own routes answer `/v1/faults`: the front door, which asks the others.
    #[must_use]
    pub fn without_fault_board(mut self) -> Self {
        self.fault_board = false;
        self
    }

    /// A service whose requests mostly wait can take more of them at once.
    #[must_use]
    pub fn in_flight_max(mut self, requests: usize) -> Self {
        self.in_flight_max = requests;
        self
    }
}

#[derive(Clone)]
struct Around {
    instance: HeaderValue,
    name: Arc<str>,
    metrics: Metrics,
    faults: Faults,
    in_flight: Arc<Semaphore>,
}

/// Turns routes into a service; see the module.
pub fn finish(
    routes: Router,
    info: ServiceInfo,
    readiness: Readiness,
    metrics: Metrics,
    faults: Faults,
) -> Router {
    let around_state = Around {
        instance: HeaderValue::from_str(&info.instance).unwrap_or(HeaderValue::from_static("unnamed")),
        name: info.instance.as_str().into(),
        metrics: metrics.clone(),
        faults: faults.clone(),
        in_flight: Arc::new(Semaphore::new(info.in_flight_max)),
    };
    let openapi: Bytes = info.openapi.to_json().expect("a document of plain data").into();
    let board = if info.fault_board {
        faults.routes()
    } else {
        Router::new()
    };
    let beside = readiness
        .routes(&info)
        .merge(board)
        .route("/metrics", get(move || async move { scrape(&metrics) }))
        .route(
            "/openapi.json",
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], openapi) }),
        )
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn(complete_problem));
    routes
        .fallback(unknown_path)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(around_state, around))
        .merge(beside)
}

async fn around(State(service): State<Around>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("(none)", MatchedPath::as_str)
        .to_owned();

    // The permit ends with the handler, not with the body: a stream of events is not work in flight.
    let Ok(_permit) = service.in_flight.try_acquire() else {
        service.metrics.refused.inc();
        return problem::complete(overloaded().into_response(), &path);
    };
    service.metrics.in_flight.inc();
    let _in_flight = Decrement(&service.metrics);

    let span = tracing::info_span!(
        "request",
        service.instance = %service.name,
        http.method = %method,
        http.route = %route,
        http.status = Empty,
        trace.id = trace_id(&request),
        purchase.id = Empty,
        payment.id = Empty,
        hold.id = Empty,
        event.id = Empty,
        lock.name = Empty,
        fencing_token = Empty,
        strategy = Empty,
        duration_ms = Empty,
    );
    let reply = ReplyFate::default();
    request.extensions_mut().insert(reply.clone());
    request.extensions_mut().insert(service.faults.clone());

    let response = next.run(request).instrument(span.clone()).await;

    let took = started.elapsed();
    let mut response = problem::complete(response, &path);
    log(&span, &response, took);
    service
        .metrics
        .observe(method.as_str(), &route, response.status().as_u16(), took);
    // Who passes an answer on leaves the name of the one who gave it.
    response
        .headers_mut()
        .entry(SERVED_BY)
        .or_insert_with(|| service.instance.clone());
    if reply.is_dropped() {
        lost_reply()
    } else {
        response
    }
}

/// Counts down also when the client goes away and the handler is dropped.
struct Decrement<'a>(&'a Metrics);

impl Drop for Decrement<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

fn trace_id(request: &Request) -> &str {
    let value = request.headers().get(ticketing_types::header::TRACEPARENT);
    value
        .and_then(|value| value.to_str().ok()?.split('-').nth(1))
        .unwrap_or_default()
}

fn log(span: &Span, response: &Response, took: Duration) {
    let status = response.status();
    span.record("http.status", status.as_u16());
    span.record("duration_ms", took.as_secs_f64() * 1000.0);
    let _entered = span.enter();
    let slug = response
        .extensions()
        .get::<Problem>()
        .map(|problem| problem.slug.as_ref());
    match status {
        // 503 is how a busy service behaves well; everything else from 500 on is a fault of ours.
        StatusCode::SERVICE_UNAVAILABLE => tracing::debug!(problem = slug, "answered"),
        _ if status.is_server_error() => tracing::warn!(problem = slug, "answered"),
        _ => tracing::debug!(problem = slug, "answered"),
    }
}

/// An answer that never reaches the client: its body fails before hyper has flushed the head, and hyper then
/// closes the connection. The client sees it end without a status, as after a crash at the wrong moment.
fn lost_reply() -> Response {
    let broken =
        futures::stream::once(async { Err::<Bytes, _>(io::Error::other("reply dropped by a fault")) });
    Response::new(Body::from_stream(broken))
}

async fn complete_problem(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    problem::complete(next.run(request).await, &path)
}

fn scrape(metrics: &Metrics) -> impl IntoResponse + use<> {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.encode())
}

fn overloaded() -> Problem {
    Problem::busy("overloaded", Duration::from_secs(1))
        .detail("too many requests are being worked on; nothing was done for this one")
}

async fn unknown_path(request: Request) -> Problem {
    Problem::not_found(format!("there is nothing at {}", request.uri().path()))
}

async fn method_not_allowed(request: Request) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed").detail(format!(
        "{} is not possible at {}",
        request.method(),
        request.uri().path()
    ))
}

fn panicked(cause: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let cause = cause
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned());
    tracing::error!(panic = %cause, "a handler panicked");
    Problem::internal().into_response()
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn one_request_too_many_is_told_to_come_back_and_health_still_answers() {
        let info = ServiceInfo::new("demo", "demo-1", utoipa::openapi::OpenApi::default()).in_flight_max(1);
        let metrics = Metrics::new("demo", "demo-1");
        let slow = Router::new().route("/slow", get(std::future::pending::<()>));
        let router = finish(slow, info, Readiness::new(), metrics.clone(), Faults::disabled());
        let ask = |path: &str| {
            let request = Request::get(path).body(Body::empty()).expect("a request");
            router.clone().oneshot(request)
        };

        let mut first = Box::pin(ask("/slow"));
        assert!(futures::poll!(&mut first).is_pending());
        let second = ask("/slow").await.expect("infallible");
        assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(second.headers()[header::RETRY_AFTER], "1");
        assert_eq!(
            ask("/healthz").await.expect("infallible").status(),
            StatusCode::OK
        );

        drop(first); // its client went away
        assert_eq!(metrics.in_flight.get(), 0);
        assert_eq!(
            ask("/nowhere").await.expect("infallible").status(),
            StatusCode::NOT_FOUND
        );
    }
}
