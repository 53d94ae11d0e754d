//! Stand-ins: an axum router on a free port that remembers what it was asked, and a front door before them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use boxoffice::Config;
use serde_json::{Value, json};
use service_kit::Running;
use tokio_util::sync::CancellationToken;

/// One request that a stand-in got.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
}

/// What a stand-in does with requests that are not about its health.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Answers.
    Well,
    /// Answers, and says on `/readyz` that it is not ready.
    Unready,
    /// Does the work and loses the answer: the connection closes.
    LosesAnswers,
}

#[derive(Clone)]
struct Shared {
    hits: Arc<Mutex<Vec<Hit>>>,
    mode: Arc<Mutex<Mode>>,
}

/// A stand-in for one instance.
pub(crate) struct Stub {
    pub(crate) addr: SocketAddr,
    shared: Shared,
    running: Option<Running>,
    shutdown: CancellationToken,
}

impl Stub {
    /// One that says its name, and what it was sent, to everything.
    pub(crate) fn echo(name: &'static str) -> Self {
        Self::with(Router::new().fallback(any(move |request| echo(name, request))))
    }

    /// One with these routes.
    pub(crate) fn with(routes: Router) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), routes)
    }

    /// One with these routes at this address.
    pub(crate) fn at(addr: SocketAddr, routes: Router) -> Self {
        let shared = Shared {
            hits: Arc::default(),
            mode: Arc::new(Mutex::new(Mode::Well)),
        };
        let ready = {
            let shared = shared.clone();
            get(move || async move {
                match *shared.mode.lock().expect("not poisoned") {
                    Mode::Unready => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::OK,
                }
            })
        };
        let router = routes
            .layer(from_fn_with_state(shared.clone(), remember))
            .route("/readyz", ready);
        let shutdown = CancellationToken::new();
        let listener = service_kit::bind(addr).expect("a port");
        let running = service_kit::serve(listener, router, shutdown.clone());
        Self {
            addr: running.addr,
            shared,
            running: Some(running),
            shutdown,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn hits(&self) -> Vec<Hit> {
        self.shared.hits.lock().expect("not poisoned").clone()
    }

    /// How often a request that begins like this came.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.hits()
            .iter()
            .filter(|hit| hit.line.starts_with(line))
            .count()
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().expect("not poisoned") = mode;
    }

    /// Goes away, with all its connections.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        self.running
            .take()
            .expect("running")
            .join()
            .await
            .expect("a clean end");
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

async fn remember(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let hit = Hit {
        line: format!("{} {}", request.method(), request.uri()),
        headers: request.headers().clone(),
    };
    shared.hits.lock().expect("not poisoned").push(hit);
    let response = next.run(request).await;
    if *shared.mode.lock().expect("not poisoned") == Mode::LosesAnswers {
        let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("lost")) });
        return Response::new(Body::from_stream(broken));
    }
    response
}

async fn echo(name: &'static str, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    let text = String::from_utf8_lossy(&body);
    let answer = json!({"by": name, "uri": parts.uri.to_string(), "body": text});
    (
        [("served-by", name), ("connection", "x-hop"), ("x-hop", "1")],
        Json(answer),
    )
        .into_response()
}

/// A lock node that leads.
pub(crate) fn leading_node(id: u64) -> Router {
    let status = json!({"id": id, "role": "leader", "term": 3, "leader": id, "sessions": 1, "locks": 1,
        "waiters": 2, "applied_index": 10, "last_log_index": 10});
    let locks = json!({"locks": [{"name": "event/gala",
        "holder": {"session_id": "s", "label": "inventory-1", "acquire_id": 1, "fencing_token": 7, "held_ms": 3},
        "waiters": [{"session_id": "t", "label": "inventory-2", "acquire_id": 1}]}]});
    Router::new()
        .route("/v1/cluster", get(move || async move { Json(status) }))
        .route("/v1/locks", get(move || async move { Json(locks) }))
        .fallback(any(move |request| echo("leader", request)))
}

/// An address where nobody listens.
pub(crate) fn nobody() -> String {
    // Port 1 on the loopback: reserved, and never taken here.
    "http://127.0.0.1:1".to_owned()
}

/// A front door before nobody; replace who is needed.
pub(crate) fn config() -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        checkout: vec![nobody()],
        inventory: vec![nobody()],
        billing: vec![nobody()],
        gateway: nobody(),
        lock_nodes: vec![nobody()],
        probe_every: Duration::from_millis(50),
        answer_within: Duration::from_secs(20),
        ..Config::default()
    }
}

/// A front door at work.
pub(crate) struct Door {
    pub(crate) addr: SocketAddr,
    pub(crate) http: reqwest::Client,
    pub(crate) shutdown: CancellationToken,
    running: Option<Running>,
}

impl Door {
    pub(crate) async fn open(config: Config) -> Self {
        let shutdown = CancellationToken::new();
        let running = boxoffice::start(config, shutdown.clone())
            .await
            .expect("a front door");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self {
            addr: running.addr,
            http,
            shutdown,
            running: Some(running),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.http.get(self.url(path)).send().await.expect("an answer")
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        self.get(path).await.json().await.expect("JSON")
    }

    /// Waits until the prober sees the instance like this.
    pub(crate) async fn sees(&self, url: &str, health: &str) {
        testkit::eventually(
            Duration::from_secs(10),
            &format!("{url} is {health}"),
            async || {
                let topology = self.json("/v1/topology").await;
                let services = topology["services"].as_array().expect("services").iter();
                let mut instances =
                    services.flat_map(|service| service["instances"].as_array().expect("instances"));
                let is = |instance: &&Value| instance["url"] == url && instance["health"] == health;
                instances.find(is).map(drop)
            },
        )
        .await;
    }

    pub(crate) async fn close(mut self) {
        self.shutdown.cancel();
        self.running
            .take()
            .expect("running")
            .join()
            .await
            .expect("a clean end");
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
