//! Inventory: what there is to sell, who holds some of it for a minute, and the tickets.
//!
//! This service owns the race that the whole suite is about. Two buyers want the last ticket; both read
//! `available = 1`, both find it enough, both write `available = 0` and a hold. One function contains that
//! read-then-write (`domain/place.rs`, `section`), and it is the same for every
//! [strategy](ticketing_types::Strategy): what keeps the two apart, or does not, is what stands around it.
//!
//! What makes the outcome visible is that **sold is counted**: a ticket is a row, `held` is the sum over running
//! holds, and `available` is the one number that is kept and can go wrong. The three add up to the capacity (I1)
//! exactly as long as nobody's write was lost.
//!
//! A hold is placed once, and ends once: it becomes tickets, or is given back, or its time does that
//! (`domain/finish.rs`). Every request may be repeated; the caller chooses the ids.
//!
//! `http/` parses and answers, `domain/` decides, `store/` speaks SQL, `workers/` loop.
//!
//! The instances of this service share a database and nothing else. Readiness asks the database only: without a
//! lock cluster an instance still shows events, confirms, and sells under the strategies that need no cluster.

mod config;
mod domain;
mod http;
mod store;
mod workers;

use std::time::Duration;

use guard::{ClientConfig, Guards};
use lock_node::HostedNode;
use service_kit::{Faults, Metrics, Readiness, Running, ServiceInfo, Starting};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use config::{Args, Config};

use crate::domain::{FAULT_POINTS, Inventory, Settings};
use crate::store::Store;
use crate::workers::returns::Returns;

/// How long sections under way may go on once everything else has ended.
const LAST_SECTIONS: Duration = Duration::from_millis(500);

/// Starts an instance: hosts its lock node if it has one, migrates the database, listens, looks for what is due.
/// It stops when `shutdown` falls.
///
/// # Errors
/// The address, the database or the lock node's disk cannot be had.
pub fn start(config: Config, shutdown: CancellationToken) -> Starting {
    Box::pin(start_parts(config, shutdown))
}

async fn start_parts(config: Config, shutdown: CancellationToken) -> anyhow::Result<Running> {
    let listener = service_kit::bind(config.listen)?;
    let store = Store::connect(&config.database_url).await?;
    let member = HostedNode::start(config.embedded_node, &shutdown).await?;
    let guards = Guards::new(ClientConfig {
        ttl: config.session_ttl,
        label: config.instance.clone(),
        token: config.lock_token.as_ref().map(|token| token.expose().to_owned()),
        ..ClientConfig::new(config.lock_urls)
    });
    let faults = Faults::new(config.enable_faults, &FAULT_POINTS);
    let sections = TaskTracker::new();
    let inventory = Inventory {
        store: store.clone(),
        guards: guards.clone(),
        faults: faults.clone(),
        settings: Settings {
            hold_ttl: config.hold_ttl,
            lock_wait: config.lock_wait,
        },
        sections: sections.clone(),
    };

    let readiness = Readiness::new().check("database", {
        let store = store.clone();
        move || {
            let store = store.clone();
            async move { store.ping().await.map_err(|error| error.to_string()) }
        }
    });
    let (routes, openapi) = http::router(http::AppState {
        inventory: inventory.clone(),
        default_strategy: config.default_strategy,
    });
    let info = ServiceInfo::new("inventory", &config.instance, openapi);
    let metrics = Metrics::new("inventory", &config.instance);
    let router = service_kit::finish(routes, info, readiness, metrics, faults);

    let returns = Returns::new(inventory).run(config.expiry_every, shutdown.clone());
    Ok(service_kit::serve(listener, router, shutdown)
        .also(tokio::spawn(returns))
        .finally(async move {
            sections.close();
            if tokio::time::timeout(LAST_SECTIONS, sections.wait())
                .await
                .is_err()
            {
                tracing::warn!("a critical section was still under way");
            }
            guards.close().await;
            // After the session that may need it.
            if let Some(member) = member {
                member.leave().await;
            }
            store.close().await;
        }))
}
