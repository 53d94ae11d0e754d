//! [`Db`]: an open database of one service, and how it is opened.
//!
//! Connecting also migrates, under a lock, so that whoever holds a `Db` can rely on its tables. With two
//! instances started at the same moment, one migrates and the other waits and finds nothing left to do.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use sqlx::migrate::Migrator;

use crate::{postgres::PostgresDb, sqlite::SqliteDb, tx::Tx};

/// The migrations of one service: the same tables in each engine's own words.
///
/// ```ignore
/// static SQLITE: Migrator = sqlx::migrate!("../../migrations/inventory/sqlite");
/// static POSTGRES: Migrator = sqlx::migrate!("../../migrations/inventory/postgres");
/// Migrations { sqlite: &SQLITE, postgres: &POSTGRES }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Migrations {
    /// Run when the URL is `sqlite://…`.
    pub sqlite: &'static Migrator,
    /// Run when the URL is `postgres://…`.
    pub postgres: &'static Migrator,
}

/// Which engine is behind a [`Db`] or a [`Tx`]; for the few statements that only one of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One file, one writer.
    Sqlite,
    /// A server.
    Postgres,
}

/// A service's database. Cheap to clone; clones share the pools.
#[derive(Clone, Debug)]
pub struct Db {
    inner: Inner,
}

/// What the macros match on; not for anybody else.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Inner {
    Sqlite(Arc<SqliteDb>),
    Postgres(Arc<PostgresDb>),
}

impl Db {
    /// Opens the database named by `url`, makes it when it is missing, and migrates it.
    ///
    /// `sqlite://relative/or/absolute/path` or `postgres://user@host:port/database`.
    pub async fn connect(url: &str, migrations: Migrations) -> anyhow::Result<Self> {
        let scheme = url.split(':').next().unwrap_or_default();
        let inner = match scheme {
            "sqlite" => Inner::Sqlite(Arc::new(
                SqliteDb::open(url, migrations.sqlite)
                    .await
                    .with_context(|| format!("cannot open {url}"))?,
            )),
            "postgres" | "postgresql" => Inner::Postgres(Arc::new(
                PostgresDb::open(url, migrations.postgres)
                    .await
                    .with_context(|| format!("cannot open {}", without_password(url)))?,
            )),
            _ => bail!(
                "a database URL starts with sqlite:// or postgres://, this one is {}",
                without_password(url)
            ),
        };
        Ok(Self { inner })
    }

    /// Which engine this is.
    pub fn engine(&self) -> Engine {
        match &self.inner {
            Inner::Sqlite(_) => Engine::Sqlite,
            Inner::Postgres(_) => Engine::Postgres,
        }
    }

    /// Begins a transaction that may write. On SQLite this waits for its turn, so keep it short.
    pub async fn begin(&self) -> sqlx::Result<Tx> {
        match &self.inner {
            Inner::Sqlite(engine) => engine.begin().await,
            Inner::Postgres(engine) => engine.begin().await,
        }
    }

    /// Asks the database for an answer; for readiness checks.
    pub async fn ping(&self) -> sqlx::Result<()> {
        crate::with_reader!(self, c => sqlx::query("select 1").execute(c).await.map(|_| ()))
    }

    /// Closes all connections, waiting for the transactions under way. On SQLite this also folds the
    /// write-ahead log back into the file.
    pub async fn close(&self) {
        match &self.inner {
            Inner::Sqlite(engine) => engine.close().await,
            Inner::Postgres(engine) => engine.close().await,
        }
    }

    #[doc(hidden)]
    pub fn __inner(&self) -> &Inner {
        &self.inner
    }
}

/// A URL that may be printed: `postgres://user:secret@host/db` → `postgres://user:***@host/db`.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((credentials, host)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    match credentials.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_never_printed() {
        assert_eq!(
            without_password("postgres://me:p@ss@db:5432/x"),
            "postgres://me:***@db:5432/x"
        );
        assert_eq!(without_password("postgres://me@db/x"), "postgres://me@db/x");
        assert_eq!(without_password("sqlite://a/b.db"), "sqlite://a/b.db");
    }
}
