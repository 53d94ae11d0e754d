//! Why inventory says no, named for what the caller can do next. `http/error.rs` knows the statuses.

use guard::GuardError;
use service_kit::Problem;
use ticketing_types::EventId;
use ticketing_types::inventory::ShortLine;

/// Errors that may be a database that is only busy.
pub(crate) trait Busy {
    /// Whether nothing was done, and the same work may succeed when it is done again right away.
    fn is_busy(&self) -> bool;
}

impl Busy for sqlx::Error {
    fn is_busy(&self) -> bool {
        service_db::is_retryable(self)
    }
}

/// Why there is no hold. In every case nothing is held, unless the database lost the answer to its commit
/// ([`service_db::is_outcome_unknown`]).
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceHoldError {
    #[error("there is no event {0}")]
    UnknownEvent(EventId),
    #[error("the events are sold in different currencies")]
    MixedCurrencies,
    #[error("the items cost more than can be counted")]
    AmountTooLarge,
    #[error("not enough is free")]
    SoldOut(Vec<ShortLine>),
    #[error("the buyer may have {limit} tickets of {event_id}")]
    LimitReached {
        event_id: EventId,
        limit: i64,
        held_or_owned: i64,
        requested: i64,
    },
    #[error("the hold's id was used with another request")]
    Mismatch,
    #[error("the hold was given back")]
    Closed,
    #[error("the hold's time is over")]
    Expired,
    #[error("a newer fencing token has written {0}")]
    StaleToken(EventId),
    #[error("others were faster every time")]
    Contended,
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("a fault was injected: {0}")]
    Injected(Problem),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Busy for PlaceHoldError {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_busy())
    }
}

/// Why a hold did not become tickets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfirmError {
    #[error("there is no such hold")]
    NotFound,
    #[error("the hold was given back")]
    Closed,
    #[error("the hold's time is over")]
    Expired,
    #[error("a fault was injected: {0}")]
    Injected(Problem),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Busy for ConfirmError {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_busy())
    }
}

/// Why a hold could not be given back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error("the hold has become tickets")]
    Confirmed,
    #[error("the hold is still placed")]
    StillPlaced,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Why stock could not be given back *now*. It stays owed, and the worker comes again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GiveBackError {
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("a newer fencing token has written {0}")]
    StaleToken(EventId),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Why there is no new event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateEventError {
    #[error("the id is taken by another event")]
    Exists,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}
