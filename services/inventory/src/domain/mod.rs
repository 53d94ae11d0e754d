//! What inventory decides. Nothing here parses a request or speaks SQL.
//!
//! [`price`] and [`stock`] are pure: they compute and compare. [`place`] is the heart, with the critical section
//! of the laboratory. [`finish`] ends holds, [`catalog`] creates and shows events.

pub(crate) mod catalog;
pub(crate) mod error;
pub(crate) mod finish;
pub(crate) mod place;
pub(crate) mod price;
pub(crate) mod stock;

use std::time::Duration;

use guard::{Attempts, Guards};
use service_kit::Faults;
use ticketing_types::EventId;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::store::Store;

/// Everything the handlers and the worker work with. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Inventory {
    pub(crate) store: Store,
    pub(crate) guards: Guards,
    pub(crate) faults: Faults,
    pub(crate) settings: Settings,
    /// Sections under way; see [`Inventory::to_its_end`].
    pub(crate) sections: TaskTracker,
}

impl Inventory {
    /// Runs what follows an entry to its end, also when whoever began it is dropped meanwhile (its client hung
    /// up, its worker was stopped).
    ///
    /// A dropped section would give its lock back while its commit may still be on its way to the database. The
    /// next one in would read what is about to change, with a newer token, and no fence would stop it. Waiting
    /// for a lock can be dropped at any time; holding one cannot.
    async fn to_its_end<T: Send + 'static>(&self, section: impl Future<Output = T> + Send + 'static) -> T {
        match self.sections.spawn(section.in_current_span()).await {
            Ok(done) => done,
            // Nobody aborts these tasks: it can only be a panic, and belongs to whoever waits here.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long a hold lasts when the request does not say.
    pub(crate) hold_ttl: Duration,
    /// How long a hold waits for its lock.
    pub(crate) lock_wait: Duration,
}

/// The fault points of this service, in the order in which a hold passes them.
pub(crate) const FAULT_POINTS: [&str; 3] = [CRITICAL_SECTION, AFTER_HOLD, AFTER_CONFIRM];
/// Between the read and the write of the section; about an event.
const CRITICAL_SECTION: &str = "inventory.critical-section";
/// The hold stands, nobody has been told; about a hold.
const AFTER_HOLD: &str = "inventory.after-hold";
/// The tickets exist, nobody has been told; about a hold.
const AFTER_CONFIRM: &str = "inventory.after-confirm";

/// How often a database that is busy (a serialization failure, a lock timeout, a lost connection) is asked again
/// before the client is told to come back.
const BUSY_TRIES: u32 = 5;

/// Runs `work` again while the database is only busy. A try that may have been committed ends it: what a further
/// one says ("sold out", "busy") could be about a moment before that commit, and would sound like certainty.
async fn again_while_busy<T, E, W>(mut work: impl FnMut() -> W) -> Result<T, E>
where
    E: error::Busy,
    W: Future<Output = Result<T, E>>,
{
    let mut attempts = Attempts::few(BUSY_TRIES);
    loop {
        match work().await {
            Err(error) if error.is_busy() => {
                tracing::debug!(tries = attempts.lost() + 1, "the database is busy");
                if !attempts.again().await {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

/// The name that guards an event's stock (DESIGN §6).
fn lock_name(event_id: &EventId) -> String {
    format!("event/{event_id}")
}
