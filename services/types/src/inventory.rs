//! Inventory's bodies (DESIGN §5.2).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Buyer, Capacity, Cart, EventId, HoldId, HoldTtlMs, Invalid, MaxPerBuyer, Money, SectionTimings, Strategy,
    TicketId,
};

/// The name of an event: 1 to 200 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 200)]
pub struct EventName(String);

impl EventName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EventName {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        if (1..=200).contains(&text.len()) && !text.chars().any(char::is_control) {
            Ok(Self(text))
        } else {
            Err(Invalid::expected(
                "a name is 1 to 200 bytes without control characters",
            ))
        }
    }
}

impl From<EventName> for String {
    fn from(name: EventName) -> String {
        name.0
    }
}

/// `POST /v1/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateEvent {
    /// Chosen by the caller, or made by the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// What the show is called.
    pub name: EventName,
    /// Seats, 1 to 1,000,000.
    pub capacity: Capacity,
    /// The price of one ticket.
    pub price: Money,
    /// Tickets one buyer may hold and own, all purchases together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_buyer: Option<MaxPerBuyer>,
}

/// Whether one can buy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Some are free.
    Available,
    /// None is free, but a hold may still give some back.
    Reserved,
    /// All are sold.
    SoldOut,
}

/// One event and its stock. `held` and `sold` are counted from the holds and tickets, never kept as counters,
/// so that a lost update of `available` cannot hide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// The event.
    pub id: EventId,
    /// What the show is called.
    pub name: String,
    /// Seats.
    pub capacity: i64,
    /// The price of one ticket.
    pub price: Money,
    /// Tickets one buyer may hold and own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_buyer: Option<i64>,
    /// The counter that the critical section reads and writes.
    pub available: i64,
    /// Tickets in running holds.
    pub held: i64,
    /// Tickets.
    pub sold: i64,
    /// `sold − capacity` when positive.
    pub oversold: i64,
    /// Whether one can buy.
    pub availability: Availability,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// `GET /v1/events`: newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// At most the `limit` that was asked for.
    pub events: Vec<EventView>,
}

/// `PUT /v1/holds/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlaceHold {
    /// Who buys.
    pub buyer: Buyer,
    /// What, all or nothing.
    pub items: Cart,
    /// How long the hold lasts, in milliseconds (default: the service's setting, one minute).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<HoldTtlMs>,
}

/// A hold that stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HoldView {
    /// The hold.
    pub id: HoldId,
    /// What it holds.
    pub items: Cart,
    /// What the items cost together.
    pub amount: Money,
    /// When it returns its stock by itself.
    pub expires_at: DateTime<Utc>,
    /// Where the time went.
    #[serde(default)]
    pub timings: SectionTimings,
}

/// One ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// The ticket.
    pub id: TicketId,
    /// The show it is for.
    pub event_id: EventId,
}

/// `POST /v1/holds/{id}/confirm`: the hold became tickets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedHold {
    /// The hold.
    pub id: HoldId,
    /// One per seat.
    pub tickets: Vec<Ticket>,
}

/// One event that could not be held, in the `lines` of a `sold-out` problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShortLine {
    /// The event.
    pub event_id: EventId,
    /// Tickets wanted, all lines of the event together.
    pub requested: u32,
    /// Tickets free when we looked.
    pub available: i64,
    /// Whether a running hold may still give some back.
    pub may_return: bool,
}

/// What became of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldStatus {
    /// It stands.
    Placed,
    /// It became tickets.
    Confirmed,
    /// Somebody gave it back; its stock is owed, and not back yet.
    Releasing,
    /// Somebody gave it back.
    Released,
    /// Time gave it back.
    Expired,
    /// It was given back before it was ever placed: the id is used up.
    Closed,
}

/// One hold in inventory's book, for the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HoldRecord {
    /// The hold.
    pub id: HoldId,
    /// What became of it.
    pub status: HoldStatus,
    /// Tickets of this event in it.
    pub quantity: i64,
    /// Tickets of this event that exist for it.
    pub tickets: i64,
    /// When it ends by itself.
    pub expires_at: DateTime<Utc>,
    /// How it was guarded.
    pub strategy: Strategy,
    /// The fencing token it was written with.
    pub fencing_token: Option<i64>,
}

/// `GET /v1/audit-records/{event_id}` of inventory: its whole book of one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InventoryRecords {
    /// The event and its stock.
    pub event: EventView,
    /// Every hold that ever named this event.
    pub holds: Vec<HoldRecord>,
    /// Writes refused because a newer token had been seen.
    pub stale_tokens_rejected: i64,
    /// The fencing tokens of accepted writes, in the order in which they were written.
    pub accepted_tokens: Vec<i64>,
}
