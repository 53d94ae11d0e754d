//! Checkout: the purchase saga over inventory and billing.
//!
//! A buyer sends one request and gets tickets, or a reason why not, and never a charge without tickets. Between
//! the two lie several calls to two services that can each be slow, gone or unsure, and a process that can be
//! killed at any moment. Three ideas carry that:
//!
//! 1. **The saga is a pure machine** ([`domain::saga`]): what comes next is a function of what has been recorded,
//!    and each record is written before the next step is taken.
//! 2. **One driver, two callers** ([`domain::driver`]): the request drives its purchase; when it cannot any more,
//!    the recovery worker ([`workers::recovery`]) claims the row and goes on.
//! 3. **One purchase per buyer and key** ([`domain::buy`]): the critical section of this service, guarded by
//!    whatever strategy the request names.
//!
//! | folder | what happens there |
//! |---|---|
//! | `http/` | parses and answers |
//! | `domain/` | decides |
//! | `store/` | speaks SQL |
//! | `workers/` | loop |
//!
//! The other services are reached over HTTP only, and asked about the same thing under one name: the purchase's
//! id is the hold's id and the payment's id.

mod config;
pub mod domain;
mod http;
pub mod store;
pub mod workers;

pub use config::{Args, Config};

use std::time::Duration;

use guard::{ClientConfig, Guards};
use lock_node::HostedNode;
use service_kit::{Faults, Metrics, Peer, Readiness, Running, ServiceInfo, Starting, http_client};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::checkout::{Checkout, Settings};
use crate::domain::driver::{Driver, FAULT_POINTS};
use crate::domain::steps::Steps;
use crate::store::{Driving, Store};
use crate::workers::recovery::{self, Recovery};

/// What a call may take beyond its wait for a lock.
const WORK: Duration = Duration::from_secs(5);

/// The parts of an instance that `start` puts together; for tests that drive the workers by hand.
#[derive(Debug)]
pub struct Parts {
    /// The service behind the routes.
    pub checkout: Checkout,
    /// The recovery worker, not running yet.
    pub recovery: Recovery,
    faults: Faults,
    guards: Guards,
    drives: TaskTracker,
}

/// Opens the book and puts the parts together. Nothing listens and nothing loops yet.
pub async fn assemble(config: &Config, shutdown: &CancellationToken) -> anyhow::Result<Parts> {
    let budget = config.lock_wait + config.budget;
    let driving = Driving {
        // A process that comes back under the same name is another driver.
        claimed_by: format!("{}/{}", config.instance, uuid::Uuid::now_v7()),
        claim_ttl: config.recovery_stale,
        // Between two writes of a driver lies at most one budget and the step that it ends in.
        silence_max: budget + config.lock_wait + WORK,
    };
    let store = Store::open(&config.database_url, driving).await?;
    let http = http_client();
    let steps = Steps {
        inventory: Peer::new(&http, "inventory", &config.inventory_urls, config.call_timeout)?,
        billing: Peer::new(&http, "billing", &config.billing_urls, config.call_timeout)?,
        hold_ttl: config.hold_ttl,
        lock_call_timeout: config.lock_wait + WORK,
    };
    let mut points = vec![domain::buy::CRITICAL_SECTION];
    points.extend(FAULT_POINTS);
    let faults = Faults::new(config.enable_faults, &points);
    let guards = Guards::new(ClientConfig {
        ttl: config.session_ttl,
        label: config.instance.clone(),
        token: config.lock_token.as_ref().map(|token| token.expose().to_owned()),
        ..ClientConfig::new(config.lock_urls.clone())
    });
    let driver = Driver::new(
        store.clone(),
        steps,
        faults.clone(),
        http::answer::answer_of,
        shutdown.clone(),
    );
    let drives = TaskTracker::new();
    let settings = Settings {
        default_strategy: config.default_strategy,
        lock_wait: config.lock_wait,
        budget,
    };
    let recovery = recovery::Settings {
        every: config.recovery_every,
        parallel: config.recovery_parallel,
        budget: config.budget,
    };
    Ok(Parts {
        recovery: Recovery::new(store.clone(), driver.clone(), recovery),
        checkout: Checkout::new(
            store,
            guards.clone(),
            faults.clone(),
            driver,
            drives.clone(),
            settings,
        ),
        faults,
        guards,
        drives,
    })
}

/// Starts an instance: hosts its lock node if it has one, opens and migrates its book, listens, works until
/// `shutdown` falls.
///
/// # Errors
/// The address, the book or the lock node's disk cannot be had.
pub fn start(config: Config, shutdown: CancellationToken) -> Starting {
    Box::pin(start_parts(config, shutdown))
}

async fn start_parts(config: Config, shutdown: CancellationToken) -> anyhow::Result<Running> {
    let listener = service_kit::bind(config.listen)?;
    // First in, last out: the other members need it, and so does our own session when it is closed.
    let node = HostedNode::start(config.embedded_node.clone(), &shutdown).await?;
    let parts = assemble(&config, &shutdown).await?;
    let running = serve(&config, parts, listener, &shutdown);
    Ok(match node {
        Some(node) => running.finally(node.leave()),
        None => running,
    })
}

/// The routes and the workers around the parts.
fn serve(config: &Config, parts: Parts, listener: TcpListener, shutdown: &CancellationToken) -> Running {
    let store = parts.checkout.store().clone();
    let database = store.db().clone();
    let readiness = Readiness::new().check("database", move || {
        let database = database.clone();
        async move { database.ping().await.map_err(|error| error.to_string()) }
    });
    let (router, openapi) = http::router(parts.checkout);
    let info = ServiceInfo::new("checkout", &config.instance, openapi);
    let metrics = Metrics::new("checkout", &config.instance);
    let router = service_kit::finish(router, info, readiness, metrics, parts.faults);

    let renewal = workers::renewal::run(store.clone(), config.recovery_stale, shutdown.clone());
    let recovery = parts.recovery.run(shutdown.clone());
    let drives = let_drives_end(parts.drives, shutdown.clone());
    let guards = parts.guards;
    service_kit::serve(listener, router, shutdown.clone())
        .also(tokio::spawn(renewal))
        .also(tokio::spawn(recovery))
        .also(tokio::spawn(drives))
        .finally(async move { guards.close().await })
        .finally(async move { store.db().close().await })
}

/// A drive whose client has gone still gets the time that requests in flight get. What does not end in time is
/// in the book, for the next process.
async fn let_drives_end(drives: TaskTracker, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    drives.close();
    let ended = tokio::time::timeout(service_kit::server::DRAIN, drives.wait()).await;
    if ended.is_err() {
        tracing::info!(
            drives = drives.len(),
            "leaving purchases unfinished; somebody will go on with them"
        );
    }
}
