//! The headers that travel with a request through the suite (DESIGN §5.5), in the lower case that HTTP/2 asks for.

/// Names the strategy: `Lock-Strategy: raft`.
pub const LOCK_STRATEGY: &str = "lock-strategy";
/// Names how payment keys are made: `Payment-Key: stable`.
pub const PAYMENT_KEY: &str = "payment-key";
/// A fault for this request alone: `Fault: billing.after-capture=drop-reply@50`.
pub const FAULT: &str = "fault";
/// W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// The caller's key of one purchase (draft-ietf-httpapi-idempotency-key-header).
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// `true` on an answer that was stored earlier and is given again.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
