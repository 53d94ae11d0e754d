//! Finishes purchases whose driver is gone: killed, cut off, or out of time.
//!
//! Looks for unfinished purchases whose claim has run out, claims them one by one (both instances may look at
//! the same list; the claim decides), and drives each as the request would have, under the same strategy, with
//! the same payment key, in the same trace. Where the request's driver stood is in the row; the step it was
//! about to take is taken again.

use std::time::{Duration, Instant};

use rand::seq::SliceRandom as _;
use service_kit::CallContext;
use ticketing_types::PurchaseId;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::domain::driver::Driver;
use crate::store::Store;

/// Purchases looked at in one go.
const LOOK_LIMIT: u32 = 256;

/// How the worker works.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How often it looks.
    pub every: Duration,
    /// How many purchases it drives at once.
    pub parallel: usize,
    /// How long it drives one before it lets go of it for a while.
    pub budget: Duration,
}

/// The worker.
#[derive(Debug)]
pub struct Recovery {
    store: Store,
    driver: Driver,
    settings: Settings,
    drives: JoinSet<()>,
}

impl Recovery {
    /// A worker that drives with `driver`.
    pub fn new(store: Store, driver: Driver, settings: Settings) -> Self {
        Self {
            store,
            driver,
            settings,
            drives: JoinSet::new(),
        }
    }

    /// Works until `shutdown` falls; then lets the drives under way come to an end (they see the same token).
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut ticks = interval(self.settings.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = ticks.tick() => {}
            }
            let begun = tokio::select! {
                () = shutdown.cancelled() => break,
                begun = self.begin_some() => begun,
            };
            if let Err(error) = begun {
                tracing::warn!(%error, "unfinished purchases could not be looked for");
            }
        }
        let _ = tokio::time::timeout(service_kit::server::DRAIN, self.drives.join_all()).await;
    }

    /// One look by hand: claims what can be claimed, drives it, and waits for the end. Answers how many purchases
    /// that were.
    pub async fn run_once(&mut self) -> sqlx::Result<usize> {
        let mut begun = 0;
        loop {
            let now = self.begin_some().await?;
            while self.drives.join_next().await.is_some() {}
            begun += now;
            if now == 0 {
                return Ok(begun);
            }
        }
    }

    /// Begins as many drives as there is room for.
    async fn begin_some(&mut self) -> sqlx::Result<usize> {
        while let Some(ended) = self.drives.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a driver failed"); // its claim runs out by itself
            }
        }
        let mut ids = self.store.stale(LOOK_LIMIT).await?;
        // The other instance looks at the same list, and should not want the same purchase first.
        ids.shuffle(&mut rand::rng());
        let mut begun = 0;
        for id in ids {
            if self.drives.len() >= self.settings.parallel {
                self.drives.join_next().await;
            }
            begun += usize::from(self.begin(&id).await?);
        }
        Ok(begun)
    }

    async fn begin(&mut self, id: &PurchaseId) -> sqlx::Result<bool> {
        let Some((claim, purchase)) = self.store.claim(id).await? else {
            return Ok(false);
        };
        tracing::info!(purchase.id = %id, step = ?purchase.saga.next(), "going on with an unfinished purchase");
        let (driver, deadline) = (self.driver.clone(), Instant::now() + self.settings.budget);
        self.drives.spawn(async move {
            driver
                .drive(claim, purchase, CallContext::default(), deadline)
                .await;
        });
        Ok(true)
    }
}
