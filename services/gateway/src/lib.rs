//! The card gateway: stands in for the processor behind a card terminal.
//!
//! It is not part of the suite under test; it is the *world outside*. It keeps a ledger of its own, in a
//! database of its own, and the audit reads how often a buyer was really charged from here and from nowhere
//! else. It is also the only service with one instance, as a processor looks like one thing to a merchant.
//!
//! What it shares with real processors is what makes charging once hard:
//!
//! * it knows nothing of purchases. A retry is told from a second charge by the idempotency key alone: the
//!   same key is the same charge, a new key is a new one;
//! * its answers can be late, lost, or a 5xx. The test cards (see `domain/card.rs`) do that on purpose,
//!   and the fault points `gateway.before-charge` and `gateway.after-charge` do it on demand.
//!
//! | folder | what happens there |
//! |---|---|
//! | `http/` | parses and answers |
//! | `domain/` | decides: pure rules over the lines of one reference |
//! | `store/` | the ledger in SQL: one transaction per call |
//!
//! There are no workers: a ledger has nothing to do by itself.

mod config;
mod domain;
mod http;
mod store;

pub use config::{Args, Config};

use service_db::Db;
use service_kit::{Faults, Metrics, Readiness, Running, ServiceInfo, Starting};
use tokio_util::sync::CancellationToken;

/// Starts a gateway: opens and migrates its ledger, listens, serves until `shutdown` falls.
pub fn start(config: Config, shutdown: CancellationToken) -> Starting {
    Box::pin(start_parts(config, shutdown))
}

async fn start_parts(config: Config, shutdown: CancellationToken) -> anyhow::Result<Running> {
    let db = Db::connect(&config.database_url, store::MIGRATIONS).await?;
    let ledger = store::Ledger::new(db.clone());
    let faults = Faults::new(config.enable_faults, &http::FAULT_POINTS);
    let readiness = {
        let db = db.clone();
        Readiness::new().check("database", move || {
            let db = db.clone();
            async move { db.ping().await.map_err(|error| error.to_string()) }
        })
    };
    let state = http::AppState {
        ledger,
        faults: faults.clone(),
        late: config.late,
    };
    let (router, openapi) = http::router(state);
    let info = ServiceInfo::new("gateway", &config.instance, openapi);
    let metrics = Metrics::new("gateway", &config.instance);
    let router = service_kit::finish(router, info, readiness, metrics, faults);
    let listener = service_kit::bind(config.listen)?;
    Ok(service_kit::serve(listener, router, shutdown).finally(async move { db.close().await }))
}
