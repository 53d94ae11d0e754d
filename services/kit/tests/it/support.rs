//! A service on port 0.

use std::time::Duration;

use axum::Router;
use service_kit::{Faults, Metrics, Readiness, Running, ServiceInfo, bind, finish, serve};
use tokio_util::sync::CancellationToken;
use utoipa::OpenApi;

pub(crate) const WITHIN: Duration = Duration::from_secs(20);

#[derive(OpenApi)]
#[openapi(info(title = "demo", version = "1"))]
struct Doc;

/// Stops when dropped.
pub(crate) struct Demo {
    pub(crate) url: String,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: Option<Running>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) fn start(routes: Router) -> Demo {
    start_with(routes, Readiness::new(), Faults::new(true, &["demo.after-work"]))
}

pub(crate) fn start_with(routes: Router, readiness: Readiness, faults: Faults) -> Demo {
    let info = ServiceInfo::new("demo", "demo-1", Doc::openapi());
    let router = finish(routes, info, readiness, Metrics::new("demo", "demo-1"), faults);
    let shutdown = CancellationToken::new();
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let running = serve(listener, router, shutdown.clone());
    Demo {
        url: format!("http://{}", running.addr),
        shutdown,
        running: Some(running),
    }
}

/// An address that refuses connections.
pub(crate) fn nobody() -> String {
    format!("http://127.0.0.1:{}", testkit::free_ports(1)[0])
}
