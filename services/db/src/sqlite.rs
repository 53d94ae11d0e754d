//! SQLite: one file, one writer, any number of readers.
//!
//! Write-ahead logging lets readers go on while one writes. `synchronous = full` makes a commit survive the
//! machine and not only the process: money is in these files.
//!
//! **Turns.** Several instances of a service share one file. Between processes SQLite's own lock does the job,
//! but whoever finds it taken sleeps and tries again, up to 100 ms a time, in no order: under a burst most of
//! the time is spent asleep and somebody starves. Instances in *one* process (the embedded default) therefore
//! queue for a turn at the file first: a fair mutex per path, held exactly as long as the transaction. It
//! changes who waits how, not what is allowed: SQLite would have let only one of them write anyway, and the
//! read-then-write race of an unguarded critical section lives outside of transactions.
//!
//! **Migrating.** sqlx's migration lock does nothing on SQLite, so two processes starting together would both
//! create the tables. A lock on a file next to the database closes that window.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use anyhow::Context as _;
use sqlx::{
    SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::Mutex as FairMutex;

use crate::tx::Tx;

/// How long a statement waits for another process's write lock before it fails as busy.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a caller waits for a connection (and so for its turn) before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Readers run truly in parallel; each connection is a thread, so not too many.
const READERS_MAX: u32 = 4;

/// The two pools of one file.
#[derive(Debug)]
pub struct SqliteDb {
    writer: SqlitePool,
    reader: SqlitePool,
    turn: Arc<FairMutex<()>>,
}

impl SqliteDb {
    pub(crate) async fn open(url: &str, migrator: &Migrator) -> anyhow::Result<Self> {
        let path = path_of(url);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // One connection for life: closing the last one would fold the log in the middle of a burst.
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false);

        let lock = lock_for_migration(&path).await?;
        let writer = writer.connect_with(options.clone()).await?;
        migrator.run(&writer).await.context("cannot migrate")?;
        drop(lock);

        let reader = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            // Not `read_only`: such a connection cannot recover a log that a killed process left behind.
            .connect_with(options.pragma("query_only", "on"))
            .await?;
        Ok(Self {
            writer,
            reader,
            turn: turn_at(&path)?,
        })
    }

    /// The pool for reads.
    pub fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    pub(crate) async fn begin(&self) -> sqlx::Result<Tx> {
        let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, self.turn.clone().lock_owned())
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)?;
        // Immediate: take the write lock now. A transaction that begins by reading would have to give up
        // when another process writes before it does.
        let tx = self.writer.begin_with("begin immediate").await?;
        Ok(Tx::sqlite(tx, turn))
    }

    pub(crate) async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// `sqlite://a/b.db?mode=rwc` → `a/b.db`.
fn path_of(url: &str) -> PathBuf {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    PathBuf::from(rest.split('?').next().unwrap_or(rest))
}

/// Waits until this process alone may migrate `path`; the lock ends when the file is closed.
async fn lock_for_migration(path: &Path) -> anyhow::Result<std::fs::File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".migrate.lock");
    let name = PathBuf::from(name);
    tokio::task::spawn_blocking(move || {
        let file = std::fs::File::create(&name).with_context(|| format!("cannot make {}", name.display()))?;
        file.lock()
            .with_context(|| format!("cannot lock {}", name.display()))?;
        Ok(file)
    })
    .await
    .context("the thread that waited for the migration lock is gone")?
}

/// The queue for `path`, shared by everybody in this process who has the file open.
fn turn_at(path: &Path) -> anyhow::Result<Arc<FairMutex<()>>> {
    static TURNS: Mutex<BTreeMap<PathBuf, Weak<FairMutex<()>>>> = Mutex::new(BTreeMap::new());

    let path = path
        .canonicalize()
        .with_context(|| format!("cannot resolve {}", path.display()))?;
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    turns.retain(|_, turn| turn.strong_count() > 0);
    if let Some(turn) = turns.get(&path).and_then(Weak::upgrade) {
        return Ok(turn);
    }
    let turn = Arc::new(FairMutex::new(()));
    turns.insert(path, Arc::downgrade(&turn));
    Ok(turn)
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn a_url_names_a_relative_or_an_absolute_file() {
        assert_eq!(path_of("sqlite://data/a.db").to_str(), Some("data/a.db"));
        assert_eq!(path_of("sqlite:///var/a.db").to_str(), Some("/var/a.db"));
        assert_eq!(path_of("sqlite:a.db?mode=rwc").to_str(), Some("a.db"));
    }
}
