//! What a database error means to the caller.
//!
//! Three questions are asked of an error: *was it this constraint?* (then it is an answer: somebody else was
//! first), *is it worth trying again?* (contention and lost connections), and otherwise it is a fault.
//!
//! The engines name a violated unique index differently: PostgreSQL by its name, SQLite by its columns
//! ("UNIQUE constraint failed: purchase.buyer, purchase.idempotency_key"). [`UniqueIndex`] holds both, next to
//! the query that can violate it. Named check constraints are reported by name on both.

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

/// Whether the same transaction may succeed when it is tried again: contention, a lost connection, a
/// database that is just starting or has no connection free. To a client this is 503 with `Retry-After`.
///
/// Says nothing about whether a *commit* happened; an error there is an unknown outcome.
pub fn is_retryable(error: &sqlx::Error) -> bool {
    match error {
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
    use super::is_retryable_code;

    #[test]
    fn contention_and_lost_connections_are_retryable_and_constraints_are_not() {
        for code in ["40001", "40P01", "55P03", "08006", "5", "517", "262"] {
            assert!(is_retryable_code(code), "{code}");
        }
        for code in ["23505", "23514", "42P01", "1555", "2067", "275", "1"] {
            assert!(!is_retryable_code(code), "{code}");
        }
    }
}
