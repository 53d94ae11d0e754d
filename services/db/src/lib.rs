//! One way to two databases: SQLite for the embedded default, PostgreSQL for everything bigger.
//!
//! A service writes each query **once**, with `$1` placeholders, and the macros [`with_tx!`] and
//! [`with_reader!`] expand it for both engines. There is no common "any database" type underneath: such
//! drivers lose uuid, JSON and time. Two concrete engines behind an enum keep every type and every error,
//! and what only one engine has (a row lock, `begin immediate`) stays in its own file here.
//!
//! ```no_run
//! # async fn example(db: &service_db::Db) -> sqlx::Result<()> {
//! let mut tx = db.begin().await?;
//! let taken = service_db::with_tx!(tx, c => {
//!     sqlx::query("update event set available = available - $1 where event_id = $2 and available >= $1")
//!         .bind(1_i64)
//!         .bind("ev-1")
//!         .execute(c)
//!         .await
//!         .map(|done| done.rows_affected()) // the engines' result types differ, a number does not
//! })?;
//! tx.commit().await?;
//! let rows: Vec<(String, i64)> = service_db::with_reader!(db, c => {
//!     sqlx::query_as("select event_id, available from event").fetch_all(c).await
//! })?;
//! # let _ = (taken, rows); Ok(())
//! # }
//! ```
//!
//! The rules that the two engines taught us, each paid for once:
//!
//! * **SQLite has one writer.** One connection writes, always with `begin immediate`; a transaction that
//!   reads first and writes later would find its snapshot stale and fail at once. Instances in one process
//!   take turns at the file (see `sqlite.rs`), because SQLite's own waiting is a sleep, not a queue.
//! * **PostgreSQL gets a small pool** (more connections than cores only wait inside the database) and a
//!   second, smaller one for reads and health, so that writers waiting for rows cannot starve them.
//! * **Nobody holds a transaction across a remote call or a lock wait.** This crate cannot check that.
//! * **A commit can be lost on its way back.** An error of a commit is not "nothing was done": ask
//!   [`is_outcome_unknown`] before [`is_retryable`], and do not tell a client that it may take another way.
//! * **A dropped transaction rolls back late**, when its connection is next used: call [`Tx::rollback`].

mod db;
mod errors;
mod macros;
mod postgres;
mod sqlite;
mod tx;

pub use db::{Db, Engine, Migrations};
pub use errors::{UniqueIndex, is_check_violation, is_outcome_unknown, is_retryable, is_unique_violation};
pub use postgres::per_service_url;
pub use tx::Tx;

#[doc(hidden)]
pub use db::Inner as __Inner;
#[doc(hidden)]
pub use tx::Inner as __TxInner;
