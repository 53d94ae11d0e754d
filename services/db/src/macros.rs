//! The two macros that let a query be written once.
//!
//! `sqlx` is generic over the engine, and a function generic over it needs a page of bounds. A macro needs
//! none: it pastes the same expression into one arm per engine, where every type is concrete. Both arms must
//! produce the same type, which rows of plain Rust types do; of an `execute`, take `rows_affected()`.
//!
//! Inside, `c` is used up by the first query that takes it. In a transaction with several queries, either
//! use the macro once per query, or reborrow: `.execute(&mut *c)`.

/// Runs `body` inside a transaction ([`crate::Tx`], or `&mut Tx`), once for each engine at compile time.
///
/// `c` is a `&mut SqliteConnection` or a `&mut PgConnection`.
#[macro_export]
macro_rules! with_tx {
    ($tx:expr, $c:ident => $body:expr) => {
        match $tx.__inner() {
            $crate::__TxInner::Sqlite { tx, .. } => {
                #[allow(unused_mut)]
                let mut $c = &mut **tx;
                $body
            }
            $crate::__TxInner::Postgres { tx } => {
                #[allow(unused_mut)]
                let mut $c = &mut **tx;
                $body
            }
        }
    };
}

/// Runs `body` on the read pool of a [`crate::Db`], outside any transaction, once for each engine at
/// compile time.
///
/// `c` is a `&SqlitePool` or a `&PgPool`; it can be used more than once, each query then sees its own moment.
#[macro_export]
macro_rules! with_reader {
    ($db:expr, $c:ident => $body:expr) => {
        match $db.__inner() {
            $crate::__Inner::Sqlite(engine) => {
                let $c = engine.reader();
                $body
            }
            $crate::__Inner::Postgres(engine) => {
                let $c = engine.reader();
                $body
            }
        }
    };
}
