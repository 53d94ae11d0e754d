//! `/healthz` says that the process lives; `/readyz` that it could do its work.
//!
//! The difference decides who is restarted and who is only spared: a service whose database is away must not
//! be killed for it, but no request should be sent there.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use futures::future::join_all;
use serde_json::{Map, Value, json};

use crate::{finish::ServiceInfo, problem::Problem};

/// How long one check may take; a dependency that needs longer is not ready.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

type CheckFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What a service needs to do its work. Cheap to clone.
#[derive(Clone, Default)]
pub struct Readiness {
    checks: Vec<Check>,
}

#[derive(Clone)]
struct Check {
    name: &'static str,
    run: Arc<dyn Fn() -> CheckFuture + Send + Sync>,
}

impl Readiness {
    /// Needs nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a dependency: `.check("database", move || { let db = db.clone(); async move { … } })`.
    pub fn check<F, Fut>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.checks.push(Check {
            name,
            run: Arc::new(move || Box::pin(run())),
        });
        self
    }

    /// Runs all checks at once, each with a deadline.
    async fn answer(&self) -> Response {
        let results = join_all(self.checks.iter().map(|check| async move {
            let started = Instant::now();
            let result = tokio::time::timeout(CHECK_TIMEOUT, (check.run)()).await;
            let result = result.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            (check.name, result, started.elapsed())
        }))
        .await;
        let failed: Vec<_> = results
            .iter()
            .filter(|(_, result, _)| result.is_err())
            .map(|(name, ..)| *name)
            .collect();
        let checks: Map<String, Value> = results
            .iter()
            .map(|(name, result, took)| {
                let mut view = json!({ "ok": result.is_ok(), "took_ms": took.as_millis() as u64 });
                if let Err(why) = result {
                    view["detail"] = why.as_str().into();
                }
                ((*name).to_owned(), view)
            })
            .collect();
        if failed.is_empty() {
            return Json(json!({ "status": "ready", "checks": checks })).into_response();
        }
        Problem::busy("not-ready", Duration::from_secs(1))
            .detail(format!("not ready: {}", failed.join(", ")))
            .with("checks", checks)
            .into_response()
    }

    pub(crate) fn routes(self, info: &ServiceInfo) -> Router {
        let alive = json!({
            "status": "ok",
            "service": info.name,
            "instance": info.instance,
            "version": info.version,
        });
        Router::new()
            .route(
                "/healthz",
                get(move || async move { (StatusCode::OK, Json(alive)) }),
            )
            .route("/readyz", get(move || async move { self.answer().await }))
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.checks.iter().map(|check| check.name))
            .finish()
    }
}
