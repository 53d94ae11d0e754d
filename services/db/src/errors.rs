//! What a database error means to the caller.
//!
//! Four questions are asked of an error: *was it this constraint?* (then it is an answer: somebody else was
//! first), *may the work have been done all the same?* (a commit whose answer was lost), *is it worth trying
//! again?* (contention and lost connections), and otherwise it is a fault.
//!
//! The engines name a violated unique index differently: PostgreSQL by its name, SQLite by its columns
//! ("UNIQUE constraint failed: purchase.buyer, purchase.idempotency_key"). [`UniqueIndex`] holds both, next to
//! the query that can violate it. Named check constraints are reported by name on both.

use std::io;

/// A unique index (or primary key) by the names that the two engines give it in an error.
///
/// ```
/// use service_db::UniqueIndex;
/// const ONE_PER_KEY: UniqueIndex = UniqueIndex {
///     name: "purchase_buyer_key",
///     columns: "purchase.buyer, purchase.idempotency_key",
/// };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueIndex {
    /// The name of the index or constraint (`<table>_pkey` for a primary key without a name of its own).
    pub name: &'static str,
    /// Its columns in order, each with its table: `table.a, table.b`.
    pub columns: &'static str,
}

impl UniqueIndex {
    /// Whether `error` says that a row would have been the second one in this index.
    pub fn violated_by(&self, error: &sqlx::Error) -> bool {
        let Some(error) = error
            .as_database_error()
            .filter(|error| error.is_unique_violation())
        else {
            return false;
        };
        match error.constraint() {
            Some(name) => name == self.name,
            None => {
                let message = error.message();
                // An index over expressions is named, one over columns is not.
                message.ends_with(&format!("failed: {}", self.columns))
                    || message.ends_with(&format!("index '{}'", self.name))
            }
        }
    }
}

/// Whether any unique index or primary key refused the row.
pub fn is_unique_violation(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.is_unique_violation())
}

/// Whether the check constraint of this name refused the row.
pub fn is_check_violation(error: &sqlx::Error, constraint: &str) -> bool {
    let Some(error) = error
        .as_database_error()
        .filter(|error| error.is_check_violation())
    else {
        return false;
    };
    match error.constraint() {
        Some(name) => name == constraint,
        None => error.message().ends_with(&format!("failed: {constraint}")),
    }
}

/// Whether nobody knows if the transaction was committed: its commit was sent, and instead of an answer the
/// connection broke. To a client this is 503 `outcome-unknown` with `Retry-After`: only the same request again,
/// with the same ids, will tell.
///
/// Only [`crate::Tx::commit`] makes such errors. A connection that breaks before it has taken the writes with it.
pub fn is_outcome_unknown(error: &sqlx::Error) -> bool {
    let sqlx::Error::Io(error) = error else {
        return false;
    };
    error.get_ref().is_some_and(|inner| inner.is::<CommitUnknown>())
}

/// The mark of an unknown outcome. It travels inside of `sqlx::Error`, so that every function between a commit
/// and whoever answers can go on returning `sqlx::Result`, and none of them can lose it.
#[derive(Debug)]
struct CommitUnknown(sqlx::Error);

impl std::fmt::Display for CommitUnknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "whether the transaction was committed is not known: {}",
            self.0
        )
    }
}

impl std::error::Error for CommitUnknown {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Marks an error of a commit, unless it is the database's own word that nothing was committed.
pub(crate) fn commit_error(error: sqlx::Error) -> sqlx::Error {
    let code = error.as_database_error().and_then(|error| error.code());
    if code.is_some_and(|code| is_rolled_back(&code)) {
        return error;
    }
    sqlx::Error::Io(io::Error::other(CommitUnknown(error)))
}

/// Whether a commit that was answered with this code has certainly not happened.
fn is_rolled_back(code: &str) -> bool {
    match code {
        // "statement completion unknown": the one of its class that says the contrary
        "40003" => false,
        // the session had ended, idle, before the commit came
        "25P03" => true,
        // a constraint checked at the end, a rollback for the sake of others, a lock that was not had
        _ if code.len() == 5 => ["23", "40", "55"].iter().any(|class| code.starts_with(class)),
        // SQLite: busy, locked, constraint
        _ => code
            .parse::<u32>()
            .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 19)),
    }
}

/// Whether the same transaction may succeed when it is tried again: contention, a lost connection, a
/// database that is just starting or has no connection free. To a client this is 503 with `Retry-After`, and
/// it means that nothing was done; so it is never said of a commit whose outcome is unknown.
pub fn is_retryable(error: &sqlx::Error) -> bool {
    match error {
        unknown if is_outcome_unknown(unknown) => false,
        sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::Io(_)
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => match error.code().as_deref() {
            Some(code) => is_retryable_code(code),
            None => false,
        },
        _ => false,
    }
}

/// SQLSTATEs of PostgreSQL are five characters; SQLite's extended result codes are numbers, of which the low
/// byte says busy (5) or locked (6).
fn is_retryable_code(code: &str) -> bool {
    match code {
        // serialization failure, deadlock, lock timeout, statement cancelled, too many connections,
        // server shutting down or starting, session ended while idle in a transaction
        "40001" | "40P01" | "55P03" | "57014" | "53300" | "57P01" | "57P02" | "57P03" | "25P03" => true,
        _ if code.len() == 5 && code.starts_with("08") => true, // connection exceptions
        _ if code.len() < 5 => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{commit_error, is_outcome_unknown, is_retryable, is_retryable_code, is_rolled_back};

    #[test]
    fn contention_and_lost_connections_are_retryable_and_constraints_are_not() {
        for code in ["40001", "40P01", "55P03", "08006", "5", "517", "262"] {
            assert!(is_retryable_code(code), "{code}");
        }
        for code in ["23505", "23514", "42P01", "1555", "2067", "275", "1"] {
            assert!(!is_retryable_code(code), "{code}");
        }
    }

    #[test]
    fn a_connection_that_breaks_is_retryable_before_the_commit_and_an_unknown_outcome_at_it() {
        let broken = || sqlx::Error::Io(io::Error::from(io::ErrorKind::ConnectionReset));
        assert!(is_retryable(&broken()) && !is_outcome_unknown(&broken()));
        let at_commit = commit_error(broken());
        assert!(is_outcome_unknown(&at_commit) && !is_retryable(&at_commit));
        assert!(at_commit.to_string().contains("not known"), "{at_commit}");
    }

    #[test]
    fn a_commit_that_the_database_itself_refused_has_not_happened() {
        for code in ["40001", "40P01", "23505", "55P03", "25P03", "5", "517", "787"] {
            assert!(is_rolled_back(code), "{code}");
        }
        for code in ["40003", "08006", "08007", "57P01", "XX000", "10", "13"] {
            assert!(!is_rolled_back(code), "{code}");
        }
    }
}
