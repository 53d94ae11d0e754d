//! [`Checkout`]: the parts of the service together, as the handlers use them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use guard::Guards;
use service_kit::{CallContext, Faults};
use ticketing_types::Strategy;
use tokio::task::JoinHandle;
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

    /// Begins to drive, in a task of its own. A client that hangs up, or a budget that is over, ends the waiting
    /// and not the drive: the money may be on its way.
    pub(super) fn begin_drive(&self, claim: Claim, purchase: Purchase, context: CallContext) -> Driven {
        let inner = &self.inner;
        let (driver, deadline) = (inner.driver.clone(), Instant::now() + inner.settings.budget);
        let drive = async move { driver.drive(claim, purchase, context, deadline).await };
        Driven {
            task: inner.drives.spawn(drive.in_current_span()),
            deadline,
        }
    }

    /// Works in a task of its own, for what must not end halfway when the client hangs up: between the write that
    /// claims a purchase and the beginning of its drive, this process would own a purchase that nobody drives.
    pub(super) async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.inner.drives.spawn(work.in_current_span()).await {
            Ok(done) => done,
            // The task is never aborted, so it panicked; that goes where a panic of the request would go.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// A purchase that a task drives.
#[derive(Debug)]
pub(super) struct Driven {
    task: JoinHandle<Drive>,
    deadline: Instant,
}

impl Driven {
    /// Waits for the end of the drive, within the budget; `None` when it goes on.
    pub(super) async fn within_budget(self) -> Option<Drive> {
        match tokio::time::timeout_at(self.deadline.into(), self.task).await {
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
