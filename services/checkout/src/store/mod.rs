//! Checkout's book in SQL, written once for both engines.
//!
//! | file | statements |
//! |---|---|
//! | `row.rs` | a purchase's row, and what it means |
//! | `section.rs` | of the critical section: find, insert, start again |
//! | `drive.rs` | of a driver: claim, record, renew, give up |
//! | `read.rs` | of those who only look: one, a buyer's, the audit's |
//!
//! Every transaction here is short, makes no call, and may be run twice: what fails by contention or a lost
//! connection is tried again a few times, also when the commit itself went unanswered.

mod drive;
mod read;
mod row;
mod section;

use std::time::Duration;

use guard::Attempts;
use service_db::{Db, Migrations, is_outcome_unknown, is_retryable};
use sqlx::migrate::Migrator;

pub use drive::{Claim, Recorded};
pub use section::Written;

static SQLITE: Migrator = sqlx::migrate!("../../migrations/checkout/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("../../migrations/checkout/postgres");

/// How often a transaction is tried that fails by contention.
const TRIES_MAX: u32 = 5;

/// Who a process is in the book, and how long it is believed to be alive.
#[derive(Debug, Clone)]
pub struct Driving {
    /// Unique per start of a process: a process that comes back is not the one that claimed.
    pub claimed_by: String,
    /// How long a claim holds without being renewed.
    pub claim_ttl: Duration,
    /// Longer than any driver goes without writing: whoever is silent for longer is not renewed any more.
    pub silence_max: Duration,
}

/// The book. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    db: Db,
    driving: Driving,
}

impl Store {
    /// Opens the book, and makes its tables when they are missing.
    pub async fn open(database_url: &str, driving: Driving) -> anyhow::Result<Self> {
        let migrations = Migrations {
            sqlite: &SQLITE,
            postgres: &POSTGRES,
        };
        Ok(Self {
            db: Db::connect(database_url, migrations).await?,
            driving,
        })
    }

    /// The database, for readiness and shutdown.
    pub fn db(&self) -> &Db {
        &self.db
    }
}

/// Runs a transaction until it succeeds, or fails in a way that another try would not help, or too often.
///
/// A commit without an answer is tried again too: each of our writes is the same the second time, or finds that the
/// first one stands. But from then on only success is certain: if it fails in the end, then with that doubt.
///
/// (`Fn() -> Future` and not `AsyncFn`: whether the future of the latter can be sent to another thread is more than
/// today's compiler can see.)
async fn again<T, F>(transaction: impl Fn() -> F) -> sqlx::Result<T>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut attempts = Attempts::few(TRIES_MAX);
    let mut doubt = None;
    loop {
        match transaction().await {
            Err(error) if is_outcome_unknown(&error) => {
                tracing::debug!(%error, "trying a transaction again, whose commit may have been the first");
                if !attempts.again().await {
                    return Err(error);
                }
                doubt = Some(error);
            }
            Err(error) if is_retryable(&error) => {
                tracing::debug!(%error, "trying a transaction again");
                if !attempts.again().await {
                    return Err(doubt.unwrap_or(error));
                }
            }
            result => return result,
        }
    }
}
