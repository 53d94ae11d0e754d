//! One instance: a tower service that counts what it has in flight, and its health.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::response::Response;
use bytes::Bytes;
use http::uri::Authority;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::Service;
use tower::load::pending_requests::Count;
use tower::load::{CompleteOnResponse, Load, PendingRequests};

use super::parcel::{self, Parcel};
use crate::domain::topology::{Health, InstanceView};

/// The HTTP client behind all instances: pooled connections per instance, as many as there are requests.
pub(crate) type HttpClient = Client<HttpConnector, Full<Bytes>>;

/// How long a connection may take: a container that is gone swallows the attempt without a word.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// Shorter than the services keep an idle connection, so that a pooled one is not closed just as it is used.
const IDLE_FOR: Duration = Duration::from_secs(20);
/// What a burst of a thousand buyers leaves behind.
const IDLE_MAX: usize = 2048;

/// The one client of a front door.
pub(crate) fn http_client() -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_FOR)
        .pool_max_idle_per_host(IDLE_MAX)
        .build(connector)
}

/// Why no answer came.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The connection was refused: nothing was sent.
    NotSent(String),
    /// The connection broke after the request was sent, or while it was.
    Broken(String),
    /// No answer in time.
    Late,
}

/// One instance of a service, or one lock node.
pub(crate) struct Instance {
    /// Its base URL.
    pub(crate) url: String,
    wire: Mutex<PendingRequests<Wire>>,
    health: Mutex<(Health, Option<String>)>,
}

impl Instance {
    /// The instance at `http://host:port`.
    pub(crate) fn new(client: &HttpClient, url: &str) -> anyhow::Result<Self> {
        let uri: http::Uri = url.parse().with_context(|| format!("{url:?} is no URL"))?;
        ensure!(
            uri.scheme_str() == Some("http"),
            "calls inside the suite are plain http, not {url}"
        );
        ensure!(
            matches!(uri.path(), "" | "/"),
            "{url} has a path; a base URL is http://host:port"
        );
        let authority = uri
            .authority()
            .with_context(|| format!("{url} names no host"))?
            .clone();
        let wire = Wire {
            client: client.clone(),
            authority,
        };
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            wire: Mutex::new(PendingRequests::new(wire, CompleteOnResponse::default())),
            health: Mutex::default(),
        })
    }

    /// Sends a parcel; the answer's head must be there in time.
    pub(crate) async fn send(&self, parcel: Parcel, within: Duration) -> Result<Response, NoAnswer> {
        // Locked for the call only: what it returns owns all it needs. `Wire` is always ready.
        let answer = self
            .wire
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .call(parcel);
        let answer = tokio::time::timeout(within, answer)
            .await
            .unwrap_or(Err(NoAnswer::Late));
        if let Err(NoAnswer::NotSent(reason)) = &answer {
            self.note(Health::Down, Some(reason.clone()));
        }
        answer
    }

    /// How many requests wait for its answer.
    pub(crate) fn load(&self) -> Count {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner).load()
    }

    /// How it is.
    pub(crate) fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Remembers how it is.
    pub(crate) fn note(&self, health: Health, detail: Option<String>) {
        let mut known = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != health {
            tracing::info!(url = %self.url, from = ?known.0, to = ?health, detail, "an instance changed");
        }
        *known = (health, detail);
    }

    /// For the topology.
    pub(crate) fn view(&self) -> InstanceView {
        let (health, detail) = self.health.lock().unwrap_or_else(PoisonError::into_inner).clone();
        InstanceView {
            url: self.url.clone(),
            health,
            detail,
        }
    }
}

/// The connection to one instance.
struct Wire {
    client: HttpClient,
    authority: Authority,
}

impl Service<Parcel> for Wire {
    type Response = Response;
    type Error = NoAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, parcel: Parcel) -> Self::Future {
        let answer = self.client.request(parcel.to(&self.authority));
        Box::pin(async move {
            match answer.await {
                Ok(response) => Ok(parcel::answer(response)),
                Err(error) if error.is_connect() => Err(NoAnswer::NotSent(causes(&error))),
                Err(error) => Err(NoAnswer::Broken(causes(&error))),
            }
        })
    }
}

/// An error with its causes: the outermost says little.
fn causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
