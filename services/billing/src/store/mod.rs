//! Billing's book in SQL.
//!
//! | module | what it holds |
//! |---|---|
//! | [`payments`] | rows of payments: look, begin, advance |
//! | [`refunds`] | refunds: reserve, finish, give back |
//! | [`row`] | rows as the database keeps them, and back |

mod payments;
mod refunds;
mod row;

use guard::Attempts;
use service_db::{Db, Migrations};
use sqlx::migrate::Migrator;

pub(crate) use payments::{Change, Condition};
pub(crate) use refunds::{Refund, RefundStatus, Reserved};

static SQLITE: Migrator = sqlx::migrate!("../../migrations/billing/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("../../migrations/billing/postgres");

/// Billing's tables.
pub(crate) const MIGRATIONS: Migrations = Migrations {
    sqlite: &SQLITE,
    postgres: &POSTGRES,
};

/// How often a write is tried that the database was too busy for.
const TRIES_MAX: u32 = 4;

/// Billing's book. Every method is one statement or one short transaction; nobody holds one across a call to
/// the processor or a wait for a lock.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    db: Db,
}

impl Store {
    pub(crate) fn new(db: Db) -> Self {
        Self { db }
    }
}

/// Tries again while the database is busy, a few times. Only for work that may be done twice: every write
/// here either carries a condition that the first one spoils, or is the same the second time.
async fn patiently<T, F, Fut>(work: F) -> sqlx::Result<T>
where
    F: Fn() -> Fut,
    Fut: Future<Output = sqlx::Result<T>>,
{
    let mut tries = Attempts::few(TRIES_MAX);
    loop {
        match work().await {
            Err(error) if service_db::is_retryable(&error) && tries.again().await => {
                tracing::debug!(%error, "the database is busy, trying again");
            }
            result => return result,
        }
    }
}
