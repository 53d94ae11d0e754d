//! Inventory's SQL: what the domain asks of the database, in words of the domain.
//!
//! Every statement is written once and runs on SQLite and PostgreSQL. Reads go through the read pool, outside
//! any transaction, but for the one that writes its fencing token down ([`section`]); writes are one short
//! transaction each. Nothing here decides: a write reports what it found
//! ([`HoldWrite`], [`Confirmation`], …), and the domain knows what that means.
//!
//! | file | what |
//! |---|---|
//! | [`event`] | events and their counted stock |
//! | [`hold`] | finding a hold, with its lines and tickets |
//! | [`section`] | the reads and the write of the critical section |
//! | [`finish`] | confirm, release, expire |
//! | [`audit`] | the whole book of one event |

pub(crate) mod audit;
pub(crate) mod event;
pub(crate) mod finish;
pub(crate) mod hold;
pub(crate) mod section;
#[cfg(test)]
mod tests;

use chrono::{DateTime, SubsecRound as _, Utc};
use service_db::{Db, Migrations};
use sqlx::migrate::Migrator;

pub(crate) use finish::{Confirmation, DueGroup, GiveBack, Release};
pub(crate) use hold::StoredHold;
pub(crate) use section::{Announced, HoldWrite, NewHold};

static SQLITE: Migrator = sqlx::migrate!("../../migrations/inventory/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("../../migrations/inventory/postgres");

/// Inventory's database. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    db: Db,
}

impl Store {
    /// Opens and migrates it.
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let migrations = Migrations {
            sqlite: &SQLITE,
            postgres: &POSTGRES,
        };
        Ok(Self {
            db: Db::connect(url, migrations).await?,
        })
    }

    /// Whether the database answers.
    pub(crate) async fn ping(&self) -> sqlx::Result<()> {
        self.db.ping().await
    }

    /// Waits for what is under way, then closes every connection.
    pub(crate) async fn close(&self) {
        self.db.close().await;
    }
}

/// This moment as both engines keep it. PostgreSQL has microseconds and SQLite our text: cut to milliseconds, a
/// time reads back exactly as it was answered first.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// Reads a stored text as one of our words. That it cannot be read means that somebody else wrote it.
fn stored<T>(text: &str) -> sqlx::Result<T>
where
    T: std::str::FromStr<Err = ticketing_types::Invalid>,
{
    text.parse()
        .map_err(|invalid: ticketing_types::Invalid| sqlx::Error::Decode(Box::new(invalid)))
}

/// A stored amount.
fn stored_money(amount_minor: i64, currency: &str) -> sqlx::Result<ticketing_types::Money> {
    ticketing_types::Currency::parse(currency)
        .and_then(|currency| ticketing_types::Money::new(amount_minor, currency))
        .map_err(|invalid| sqlx::Error::Decode(Box::new(invalid)))
}
