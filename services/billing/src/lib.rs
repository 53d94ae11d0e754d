//! Billing: authorizes, captures, voids and refunds payments, once each.
//!
//! "Once" has two enemies, and each needs its own answer:
//!
//! 1. *Two at once.* Two requests for one payment look at the same moment, see no charge, and both charge. A
//!    lock around look-and-charge stops that (`domain/section.rs`), and so does claiming the row first.
//! 2. *One, twice.* A reply is lost, and the request is sent again. No lock helps: the first one is long gone.
//!    Only a key that is the same for both lets the card processor recognise the second (`domain/processor.rs`).
//!
//! Both axes are switches of a request (`Lock-Strategy`, `Payment-Key`), so that each can be shown alone.
//!
//! What the processor did is *unknown* when its answer does not come. Billing asks again a few times, then says
//! 503 `payment-unknown` and keeps the row in an in-between status. The caller asks again with the same id, or
//! the settling worker does it without the caller. An unknown outcome is never called a decline.
//!
//! | folder | what happens there |
//! |---|---|
//! | `http/` | parses and answers |
//! | `domain/` | decides; the critical section |
//! | `store/` | speaks SQL |
//! | `workers/` | settles what was left in between |

mod config;
mod domain;
mod http;
mod store;
mod workers;

pub use config::{Args, Config};

use std::time::Duration;

use guard::{ClientConfig, Guards};
use lock_node::HostedNode;
use service_db::Db;
use service_kit::{Faults, Metrics, Peer, Readiness, Running, ServiceInfo, Starting};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use domain::payments::Payments;
use domain::processor::{CALL_TIMEOUT, Processor};
use domain::section::FAULT_POINTS;
use workers::settle::Settler;

/// How long charges under way may take to be recorded once everything else has ended.
const LAST_CHARGES: Duration = Duration::from_millis(500);

/// Starts an instance: opens and migrates its database, listens, serves until `shutdown` falls.
pub fn start(config: Config, shutdown: CancellationToken) -> Starting {
    Box::pin(start_parts(config, shutdown))
}

async fn start_parts(config: Config, shutdown: CancellationToken) -> anyhow::Result<Running> {
    let db = Db::connect(&config.database_url, store::MIGRATIONS).await?;
    let faults = Faults::new(config.enable_faults, &FAULT_POINTS);
    let node = HostedNode::start(config.embedded_node, &shutdown).await?;
    let guards = Guards::new(ClientConfig {
        ttl: config.session_ttl,
        label: config.instance.clone(),
        token: config.lock_token.as_ref().map(|token| token.expose().to_owned()),
        ..ClientConfig::new(config.lock_urls)
    });
    let gateway = Peer::new(
        &service_kit::http_client(),
        "gateway",
        &config.gateway_urls,
        CALL_TIMEOUT,
    )?;
    let tasks = TaskTracker::new();
    let payments = Payments {
        store: store::Store::new(db.clone()),
        guards: guards.clone(),
        processor: Processor::new(gateway),
        faults: faults.clone(),
        tasks: tasks.clone(),
    };
    let settler = Settler {
        payments: payments.clone(),
        stale_after: config.settle_after,
        every: config.settle_every,
    };

    let state = http::AppState {
        payments,
        default_strategy: config.default_strategy,
        lock_wait: config.lock_wait,
    };
    let (router, openapi) = http::router(state);
    let info = ServiceInfo::new("billing", &config.instance, openapi);
    let metrics = Metrics::new("billing", &config.instance);
    let router = service_kit::finish(router, info, readiness(&db), metrics, faults);
    let listener = service_kit::bind(config.listen)?;
    let settler = tokio::spawn(settler.run(shutdown.clone()));
    let last = async move {
        tasks.close();
        if tokio::time::timeout(LAST_CHARGES, tasks.wait()).await.is_err() {
            tracing::warn!("charges under way are left to the settling worker of the next start");
        }
        guards.close().await;
        // The member goes after the session that may need it.
        if let Some(node) = node {
            node.leave().await;
        }
        db.close().await;
    };
    Ok(service_kit::serve(listener, router, shutdown)
        .also(settler)
        .finally(last))
}

fn readiness(db: &Db) -> Readiness {
    let db = db.clone();
    Readiness::new().check("database", move || {
        let db = db.clone();
        async move { db.ping().await.map_err(|error| error.to_string()) }
    })
}
