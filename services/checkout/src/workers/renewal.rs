//! Renews the claims of this process, all of them in one statement, three times per claim's life.
//!
//! A purchase may wait longer for a lock than a claim lives. One statement for the process, instead of one per
//! purchase, because a burst has a thousand of them waiting. A driver that died without its process (a panic) is
//! renewed too, but only until it has been silent for longer than any living driver can be.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::store::Store;

/// Renews until `shutdown` falls.
pub async fn run(store: Store, claim_ttl: Duration, shutdown: CancellationToken) {
    let mut ticks = interval(claim_ttl / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        // Missed once, the claims still have two thirds of their life.
        if let Err(error) = store.renew().await {
            tracing::warn!(%error, "claims could not be renewed");
        }
    }
}
