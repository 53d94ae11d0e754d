//! [`TestDb`]: a fresh, empty database for one test, on either engine.
//!
//! A store test that runs on one engine proves half: a missing bind is NULL on SQLite and an error on
//! PostgreSQL. [`for_each_engine!`] makes two tests of one body. Where no PostgreSQL can be had the second says
//! SKIPPED on stderr and passes, except under `CI`, where it fails: a check that silently does not run is worse
//! than none.

use crate::server::Database;

/// A fresh database. Its files, or the database on the server, go when this is dropped.
#[derive(Debug)]
pub struct TestDb {
    url: String,
    _keep: Keep,
}

/// What must live as long as the database. (Never read; dropped.)
#[derive(Debug)]
enum Keep {
    Sqlite { _dir: tempfile::TempDir },
    Postgres { _database: Database },
}

impl TestDb {
    /// For `Db::connect`: `sqlite:///…` or `postgres://…`. The database itself is made by whoever connects.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A further database beside this one, for tests of several services: on SQLite another file, on PostgreSQL
    /// another database on the same server. Goes with this one.
    pub fn url_for(&self, service: &str) -> String {
        match &self._keep {
            Keep::Sqlite { _dir: dir } => sqlite_url(dir, service),
            Keep::Postgres { .. } => service_db::per_service_url(&self.url, service),
        }
    }
}

/// A file in a directory of its own.
pub fn sqlite() -> TestDb {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    TestDb {
        url: sqlite_url(&dir, "test"),
        _keep: Keep::Sqlite { _dir: dir },
    }
}

fn sqlite_url(dir: &tempfile::TempDir, name: &str) -> String {
    format!("sqlite://{}", dir.path().join(format!("{name}.db")).display())
}

/// A database on a PostgreSQL server: the one of `TEST_DATABASE_URL` (made once for a whole run by the CI
/// script), or else one of our own from the machine's binaries, which ends with the tests that use it.
/// `None`, said loudly, where neither can be had.
///
/// # Panics
/// Instead of `None` under `CI`, or when `TEST_DATABASE_URL` names a server that cannot be reached.
pub async fn postgres() -> Option<TestDb> {
    match Database::fresh().await {
        Ok(database) => Some(TestDb {
            url: database.url().to_owned(),
            _keep: Keep::Postgres { _database: database },
        }),
        Err(why) if demanded() => panic!("no PostgreSQL for this test: {why:#}"),
        Err(why) => {
            eprintln!("SKIPPED, not passed: no PostgreSQL for this test ({why:#}); set TEST_DATABASE_URL");
            None
        }
    }
}

/// Whether a test without PostgreSQL is a failure: under CI, and where somebody named a server.
fn demanded() -> bool {
    ["CI", "TEST_DATABASE_URL"]
        .into_iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// A database of each engine that can be had, SQLite first.
pub async fn each_engine() -> Vec<TestDb> {
    let mut databases = vec![sqlite()];
    databases.extend(postgres().await);
    databases
}

/// Makes two tests of each function: `<name>::on_sqlite` and `<name>::on_postgres`.
///
/// ```ignore
/// testkit::for_each_engine! {
///     async fn a_hold_is_placed_once(db: testkit::TestDb) {
///         let store = Store::connect(db.url()).await.unwrap();
///     }
/// }
/// ```
#[macro_export]
macro_rules! for_each_engine {
    ($($(#[$attr:meta])* async fn $name:ident($db:ident: $ty:ty) $body:block)+) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $(#[$attr])*
            async fn body($db: $ty) $body

            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                body($crate::sqlite()).await;
            }

            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                if let Some(db) = $crate::postgres().await {
                    body(db).await;
                }
            }
        }
    )+};
}
