//! [`Checkout`]: the parts of the service together, as the handlers use them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use guard::Guards;
use service_kit::{CallContext, Faults};
use ticketing_types::Strategy;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::driver::{Drive, Driver};
use super::purchase::Purchase;
use crate::store::{Claim, Store};

/// What is decided by configuration.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// For requests that name none.
    pub default_strategy: Strategy,
    /// How long a purchase waits for the lock of its key.
    pub lock_wait: Duration,
    /// How long a request waits for its purchase, from the moment at which it holds the key.
    pub budget: Duration,
}

/// The service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Checkout {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) guards: Guards,
    pub(super) faults: Faults,
    pub(super) driver: Driver,
    pub(super) drives: TaskTracker,
    pub(super) settings: Settings,
}

impl Checkout {
    /// Puts the parts together. `drives` knows every purchase that a request drives, for the shutdown.
    pub fn new(
        store: Store,
        guards: Guards,
        faults: Faults,
        driver: Driver,
        drives: TaskTracker,
        settings: Settings,
    ) -> Self {
        let inner = Inner {
            store,
            guards,
            faults,
            driver,
            drives,
            settings,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The book, for those who only read.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(super) fn parts(&self) -> &Inner {
        &self.inner
    }

    /// Drives in a task of its own and waits for it, within the budget. A client that hangs up, or a budget that
    /// is over, ends the waiting and not the drive: the money may be on its way.
    pub(super) async fn drive(
        &self,
        claim: Claim,
        purchase: Purchase,
        context: CallContext,
    ) -> Option<Drive> {
        let inner = &self.inner;
        let (driver, deadline) = (inner.driver.clone(), Instant::now() + inner.settings.budget);
        let drive = async move { driver.drive(claim, purchase, context, deadline).await };
        let task = inner.drives.spawn(drive.in_current_span());
        match tokio::time::timeout_at(deadline.into(), task).await {
            Ok(Ok(drive)) => Some(drive),
            Ok(Err(error)) => {
                // The claim runs out by itself, and the recovery worker goes on.
                tracing::error!(%error, "a driver failed");
                None
            }
            Err(_) => None,
        }
    }
}
