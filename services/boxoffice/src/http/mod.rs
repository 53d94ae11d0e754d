//! What the front door answers: its own routes, and the doors to everybody else.

mod audit;
mod docs;
mod faults;
mod page;
mod pass;
mod rounds;
mod stream;
mod topology;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use service_kit::{Peer, http_client};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::config::Config;
use crate::domain::route::OWNERS;
use crate::domain::topology::Topology;
use crate::upstream::leader::Nodes;
use crate::upstream::pool::Pool;
use crate::workers::prober::LockLine;
use crate::workers::rounds::Rounds;

/// How long one book may take to be read.
const BOOK_WITHIN: Duration = Duration::from_secs(10);
/// Streams at once; a page has one.
const STREAMS_MAX: usize = 256;

/// Everybody behind the front door.
pub(crate) struct Upstreams {
    pub(crate) checkout: Pool,
    pub(crate) inventory: Pool,
    pub(crate) billing: Pool,
    pub(crate) gateway: Pool,
    pub(crate) nodes: Nodes,
}

impl Upstreams {
    /// The services, each with its name.
    fn pools(&self) -> [&Pool; 4] {
        [&self.checkout, &self.inventory, &self.billing, &self.gateway]
    }
}

/// The services as peers, for the audit: it asks and reads, where a door only passes on.
struct Peers {
    checkout: Peer,
    inventory: Peer,
    billing: Peer,
    gateway: Peer,
}

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Inner>);

pub(crate) struct Inner {
    upstreams: Upstreams,
    peers: Peers,
    topology: watch::Receiver<Topology>,
    locks: watch::Sender<Vec<LockLine>>,
    rounds: Rounds,
    streams: Arc<Semaphore>,
    shutdown: CancellationToken,
}

impl std::ops::Deref for AppState {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl AppState {
    pub(crate) fn new(
        upstreams: Upstreams,
        config: &Config,
        topology: watch::Receiver<Topology>,
        locks: watch::Sender<Vec<LockLine>>,
        rounds: Rounds,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let http = http_client();
        let peer = |name, urls: &[String]| Peer::new(&http, name, urls, BOOK_WITHIN);
        let peers = Peers {
            checkout: peer("checkout", &config.checkout)?,
            inventory: peer("inventory", &config.inventory)?,
            billing: peer("billing", &config.billing)?,
            gateway: peer("gateway", std::slice::from_ref(&config.gateway))?,
        };
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        Ok(Self(Arc::new(Inner {
            upstreams,
            peers,
            topology,
            locks,
            rounds,
            streams,
            shutdown,
        })))
    }
}

#[derive(OpenApi)]
#[openapi(info(
    title = "boxoffice",
    description = "The front door: everything of the suite on one port, the audit over all books, and rounds."
))]
struct ApiDoc;

/// The routes, and the description of those that are our own.
pub(crate) fn router(state: AppState) -> (Router, utoipa::openapi::OpenApi) {
    let (own, openapi) = OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(routes!(topology::show))
        .routes(routes!(audit::show))
        .routes(routes!(rounds::start, rounds::list))
        .routes(routes!(rounds::show))
        .routes(routes!(stream::stream))
        .routes(routes!(faults::list))
        .routes(routes!(faults::arm, faults::disarm))
        .routes(routes!(docs::openapi_of))
        .split_for_parts();
    let mut router = own;
    for (prefix, owner) in OWNERS {
        // A wildcard matches one character at least: the path that only ends in a slash needs its own line.
        let door = any(move |state, request| pass::pass(owner, state, request));
        router = router
            .route(prefix, door.clone())
            .route(&format!("{prefix}/"), door.clone())
            .route(&format!("{prefix}/{{*rest}}"), door);
    }
    let router = router
        .with_state(state)
        .merge(docs::pages())
        .merge(page::routes());
    (router, openapi)
}
