//! Why a payment did not go on. Named for what the caller can do next; HTTP comes in `http/error.rs`.

use guard::GuardError;
use service_kit::Problem;

/// Why a payment did not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PaymentError {
    #[error("there is no such payment")]
    NotFound,
    #[error("this payment was asked for with another buyer, amount or card before")]
    Mismatch,
    #[error("the card was declined")]
    Declined,
    #[error("this payment was voided")]
    Voided,
    #[error("the money was already taken: refund it instead")]
    Captured,
    #[error("this payment is not authorized yet")]
    NotAuthorized,
    #[error("this refund was asked for with another amount before")]
    RefundMismatch,
    #[error("the payment was made in another currency")]
    CurrencyMismatch,
    #[error("only {refundable_minor} minor units can still be given back")]
    OverRefund { refundable_minor: i64 },
    /// A newer holder of the lock has written since.
    #[error("the lock was lost to a newer holder; its write stands")]
    StaleFencingToken,
    /// Another request without a lock is at the same payment.
    #[error("another request is working on this payment")]
    InProgress,
    /// Perhaps done, perhaps not. Never a decline.
    #[error("the card processor's answer is not known yet")]
    Unknown,
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The fault board's answer instead of ours.
    #[error("{0}")]
    Injected(#[from] Problem),
}
