//! [`Tx`]: a transaction on either engine.
//!
//! On SQLite it also holds the *turn* at the file (see [`crate::sqlite`]), so that the turn ends exactly when
//! the transaction does, however it ends.

use sqlx::{Postgres, Sqlite, Transaction};
use tokio::sync::OwnedMutexGuard;

use crate::db::Engine;
use crate::errors::commit_error;

/// A transaction that may write; see [`crate::Db::begin`]. Queries go through [`crate::with_tx!`].
///
/// End it with [`Tx::commit`] or [`Tx::rollback`]. Merely dropped, it is rolled back too, but only when
/// its connection is used the next time, and its row locks live until then.
#[derive(Debug)]
pub struct Tx {
    inner: Inner,
}

/// What the macros match on; not for anybody else.
#[doc(hidden)]
#[derive(Debug)]
pub enum Inner {
    Sqlite {
        tx: Transaction<'static, Sqlite>,
        turn: OwnedMutexGuard<()>,
    },
    Postgres {
        tx: Transaction<'static, Postgres>,
    },
}

impl Tx {
    pub(crate) fn sqlite(tx: Transaction<'static, Sqlite>, turn: OwnedMutexGuard<()>) -> Self {
        Self {
            inner: Inner::Sqlite { tx, turn },
        }
    }

    pub(crate) fn postgres(tx: Transaction<'static, Postgres>) -> Self {
        Self {
            inner: Inner::Postgres { tx },
        }
    }

    /// Which engine this is.
    pub fn engine(&self) -> Engine {
        match &self.inner {
            Inner::Sqlite { .. } => Engine::Sqlite,
            Inner::Postgres { .. } => Engine::Postgres,
        }
    }

    /// Makes the writes durable. An error that does not say for certain that they were taken back is marked:
    /// [`crate::is_outcome_unknown`] recognises it, however far it is handed on.
    pub async fn commit(self) -> sqlx::Result<()> {
        let result = match self.inner {
            Inner::Sqlite { tx, turn } => {
                let result = tx.commit().await;
                drop(turn); // after the commit, never before
                result
            }
            Inner::Postgres { tx } => tx.commit().await,
        };
        result.map_err(commit_error)
    }

    /// Takes the writes back, now.
    pub async fn rollback(self) -> sqlx::Result<()> {
        match self.inner {
            Inner::Sqlite { tx, turn } => {
                let result = tx.rollback().await;
                drop(turn);
                result
            }
            Inner::Postgres { tx } => tx.rollback().await,
        }
    }

    #[doc(hidden)]
    pub fn __inner(&mut self) -> &mut Inner {
        &mut self.inner
    }
}
