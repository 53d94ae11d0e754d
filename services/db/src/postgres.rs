//! PostgreSQL: a database per service on one server.
//!
//! Two pools. Eight connections for transactions: measured on two cores, more of them only queue inside the
//! database. Four more for reads and health, because a burst of transactions that wait for one row would
//! otherwise occupy every connection and make `select 1` wait for half a second.
//!
//! `lock_timeout` bounds every wait for a row, so that a stuck transaction somewhere turns into a retryable
//! error here instead of a hung request.
//!
//! `idle_in_transaction_session_timeout` is shorter than a lock session lives (5 s): a process that is stopped
//! between a write and its commit must have lost that transaction before anybody else is granted its lock. Were it
//! committed after the next holder has read, the next holder's newer fencing token would not notice.

use std::{str::FromStr as _, time::Duration};

use anyhow::Context as _;
use sqlx::{
    ConnectOptions as _, Connection as _, PgPool, SqlSafeStr as _,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::tx::Tx;

/// Connections for transactions.
const WRITERS_MAX: u32 = 8;
/// Connections for reads and health.
const READERS_MAX: u32 = 4;
/// How long a caller waits for a connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Instances are many and servers allow a hundred connections: give back what is not used.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The two pools of one database.
#[derive(Debug)]
pub struct PostgresDb {
    pool: PgPool,
    reader: PgPool,
}

impl PostgresDb {
    pub(crate) async fn open(url: &str, migrator: &Migrator) -> anyhow::Result<Self> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("last-ticket")
            .options([
                ("lock_timeout", "5s"),
                ("idle_in_transaction_session_timeout", "2s"),
            ]);
        create_if_missing(&options).await?;

        let pool = |connections_max| {
            PgPoolOptions::new()
                .max_connections(connections_max)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .idle_timeout(IDLE_TIMEOUT)
                // A dead connection shows itself in the statement, which is retryable; a ping per use is not free.
                .test_before_acquire(false)
                .connect_lazy_with(options.clone())
        };
        let (writer, reader) = (pool(WRITERS_MAX), pool(READERS_MAX));
        // sqlx takes an advisory lock around this, so instances may start together. It waits for that lock
        // longer than `lock_timeout` allows, hence a connection of its own without one.
        let migrating = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone().options([("lock_timeout", "0")]))
            .await?;
        let migrated = migrator.run(&migrating).await.context("cannot migrate");
        migrating.close().await;
        migrated?;
        Ok(Self { pool: writer, reader })
    }

    /// The pool for reads.
    pub fn reader(&self) -> &PgPool {
        &self.reader
    }

    pub(crate) async fn begin(&self) -> sqlx::Result<Tx> {
        Ok(Tx::postgres(self.pool.begin().await?))
    }

    pub(crate) async fn close(&self) {
        self.reader.close().await;
        self.pool.close().await;
    }
}

/// Makes the database through the server's own `postgres` database, unless it is there.
async fn create_if_missing(options: &PgConnectOptions) -> anyhow::Result<()> {
    match options.connect().await {
        Ok(connection) => return Ok(connection.close().await?),
        Err(error) if code_of(&error).as_deref() == Some(INVALID_CATALOG_NAME) => {}
        Err(error) => return Err(error).context("cannot connect"),
    }
    let name = options.get_database().unwrap_or("postgres").to_owned();
    let mut admin = options
        .clone()
        .database("postgres")
        .connect()
        .await
        .with_context(|| {
            format!("the database {name} is missing, and cannot be made without the database postgres")
        })?;
    let quoted = name.replace('"', "\"\"");
    let created = sqlx::query(sqlx::AssertSqlSafe(format!("create database \"{quoted}\"")).into_sql_str())
        .execute(&mut admin)
        .await;
    admin.close().await?;
    match created {
        Ok(_) => Ok(()),
        // The other instance was faster.
        Err(error)
            if matches!(
                code_of(&error).as_deref(),
                Some(DUPLICATE_DATABASE | UNIQUE_VIOLATION)
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(error).with_context(|| format!("cannot create the database {name}")),
    }
}

const INVALID_CATALOG_NAME: &str = "3D000";
const DUPLICATE_DATABASE: &str = "42P04";
const UNIQUE_VIOLATION: &str = "23505";

fn code_of(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// The URL of one service's database, from the URL of the server that all of them share.
///
/// A server URL with a database name uses it as a prefix, so that several suites fit on one server:
/// `postgres://h/demo` + `inventory` → `postgres://h/demo_inventory`; `postgres://h` → `postgres://h/inventory`.
pub fn per_service_url(server_url: &str, service: &str) -> String {
    let (base, query) = match server_url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (server_url, String::new()),
    };
    let authority_at = base.find("://").map_or(0, |at| at + 3);
    let (server, database) = match base[authority_at..].find('/') {
        Some(slash) => (&base[..authority_at + slash], &base[authority_at + slash + 1..]),
        None => (base, ""),
    };
    let database = if database.is_empty() {
        service.to_owned()
    } else {
        format!("{database}_{service}")
    };
    format!("{server}/{database}{query}")
}

#[cfg(test)]
mod tests {
    use super::per_service_url;

    #[test]
    fn every_service_gets_a_database_of_its_own() {
        assert_eq!(
            per_service_url("postgres://u@h:5", "billing"),
            "postgres://u@h:5/billing"
        );
        assert_eq!(
            per_service_url("postgres://u@h:5/", "billing"),
            "postgres://u@h:5/billing"
        );
        assert_eq!(
            per_service_url("postgres://u@h/demo", "billing"),
            "postgres://u@h/demo_billing"
        );
        assert_eq!(
            per_service_url("postgres://u@h/demo?x=1", "billing"),
            "postgres://u@h/demo_billing?x=1"
        );
    }
}
