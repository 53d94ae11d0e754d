//! The words that two or more services share, as types that cannot hold a wrong value.
//!
//! *Parse, don't validate*: everything a client can send is parsed at the edge into one of these types, and
//! what is inside a service is then right by construction: a [`Quantity`] is 1 to 10, a [`Cart`] has 1 to 10
//! lines, a [`Money`] has a currency of ISO 4217. No constructor but `parse`/`try_from`, no setter.
//!
//! The crate is pure: no clock, no randomness, no I/O, no web framework. The `serde` shapes here *are* the
//! wire format between the services (DESIGN §5); `utoipa` derives the OpenAPI schemas from the same lines.
//!
//! | module | what it holds |
//! |---|---|
//! | [`id`] | ids of events, holds, payments, purchases, tickets, refunds; who buys |
//! | [`bounded`] | small whole numbers with a range ([`Quantity`], [`Capacity`], …) |
//! | [`money`] | minor units and ISO 4217 |
//! | [`cart`] | the lines of a purchase, summed per event |
//! | [`strategy`] | how a critical section is guarded, and how payment keys are made |
//! | [`fault`] | `<point>=<effect>[@percent]` |
//! | [`header`] | the names of the headers that travel with a request |
//! | [`inventory`], [`billing`], [`gateway`], [`checkout`] | the bodies that cross service boundaries |
//! | [`audit`] | the books that the audit reads, and its verdict |

pub mod audit;
pub mod billing;
pub mod bounded;
pub mod cart;
pub mod checkout;
pub mod fault;
pub mod gateway;
pub mod header;
pub mod id;
pub mod inventory;
pub mod money;
pub mod strategy;

pub use bounded::{Capacity, HoldTtlMs, MaxPerBuyer, Quantity};
pub use cart::{Cart, Line};
pub use fault::{Effect, FaultSpec};
pub use id::{Buyer, EventId, HoldId, PaymentId, PurchaseId, RefundId, TicketId};
pub use money::{Currency, Money};
pub use strategy::{PaymentKey, Strategy};

/// Why a value was refused, in words meant for the person who sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    /// An error that says what would have been right.
    pub fn expected(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// How long the parts of one guarded step took, in milliseconds. Travels back with the answers of inventory
/// and billing, so that checkout can say where a purchase spent its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct SectionTimings {
    /// Time spent waiting for the lock (0 for strategies that take none).
    #[serde(default)]
    pub lock_wait_ms: f64,
    /// Time between entering and leaving the critical section.
    #[serde(default)]
    pub section_ms: f64,
    /// When inventory had read the stock. With `written_at` it shows who overtook whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<chrono::DateTime<chrono::Utc>>,
    /// When inventory had written the stock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<chrono::DateTime<chrono::Utc>>,
}
