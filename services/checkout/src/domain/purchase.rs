//! What is known of one purchase: the order, the terms it is carried out under, and how far it has come.

use chrono::{DateTime, SubsecRound as _, Utc};
use service_kit::{CallContext, IdempotencyKey};
use sha2::{Digest as _, Sha256};
use ticketing_types::billing::Card;
use ticketing_types::checkout::{BuyTickets, PurchaseTimings, PurchaseView};
use ticketing_types::{Buyer, Cart, PaymentKey, PurchaseId, Strategy};

use super::saga::{Rejection, Saga};

/// What a buyer asked for, under a key. Never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Who buys: the scope of the key.
    pub buyer: Buyer,
    /// The caller's name for this intention.
    pub idempotency_key: String,
    /// A hash of everything else that was asked for: the same key with another one is a mistake of the caller.
    pub fingerprint: String,
    /// What, as it was sent.
    pub items: Cart,
    /// With what.
    pub card: Card,
}

impl Order {
    /// An order as it came in.
    pub fn new(wish: BuyTickets, key: &IdempotencyKey) -> Self {
        // Hashed as we write it, not as it was sent: white space and the order of members mean nothing.
        let text = serde_json::to_vec(&wish).expect("a wish is plain data with string keys");
        Self {
            fingerprint: sha256_hex(&[&text]),
            buyer: wish.buyer,
            idempotency_key: key.as_str().to_owned(),
            items: wish.items,
            card: wish.card,
        }
    }

    /// What guards the section of this order: one lock per buyer and key.
    pub fn lock_name(&self) -> String {
        // No buyer contains a control character, so the zero byte cannot be moved between the two.
        let scope = sha256_hex(&[
            self.buyer.as_str().as_bytes(),
            b"\0",
            self.idempotency_key.as_bytes(),
        ]);
        format!("purchase/{scope}")
    }
}

/// How a purchase is carried out, by whoever drives it: the recovery worker keeps to what the request said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// How critical sections are guarded.
    pub strategy: Strategy,
    /// How payment keys are made.
    pub payment_key: PaymentKey,
    /// The trace that the request belongs to.
    pub traceparent: Option<String>,
}

impl Terms {
    /// The terms of a request.
    pub fn of(context: &CallContext, default_strategy: Strategy) -> Self {
        let strategy = context.strategy_or(default_strategy);
        Self {
            strategy,
            payment_key: context.payment_key_or(strategy),
            traceparent: context.traceparent.clone(),
        }
    }

    /// What the calls of a purchase carry: these terms, said aloud, so that no service falls back to a default
    /// of its own. A fault and the fate of the reply belong to the request and go with `context` only.
    pub fn onto(&self, mut context: CallContext) -> CallContext {
        context.strategy = Some(self.strategy);
        context.payment_key = Some(self.payment_key);
        context.traceparent.clone_from(&self.traceparent);
        context
    }
}

/// One purchase.
#[derive(Debug, Clone, PartialEq)]
pub struct Purchase {
    /// Also the id of its hold and its payment.
    pub id: PurchaseId,
    /// What was asked for.
    pub order: Order,
    /// How it is carried out.
    pub terms: Terms,
    /// How far it has come.
    pub saga: Saga,
    /// Where the time went.
    pub timings: PurchaseTimings,
    /// Somebody wants it called off, and that is not settled yet.
    pub cancel_requested: bool,
    /// When the request arrived.
    pub created_at: DateTime<Utc>,
}

impl Purchase {
    /// A purchase that has not begun.
    pub fn new(order: Order, terms: Terms, arrived: DateTime<Utc>) -> Self {
        Self {
            id: PurchaseId::from_uuid(uuid::Uuid::now_v7()),
            order,
            terms,
            saga: Saga::begin(),
            timings: PurchaseTimings::default(),
            cancel_requested: false,
            created_at: arrived,
        }
    }

    /// Whether it ended without anything having happened, so that the same key may start again.
    pub fn may_start_again(&self) -> bool {
        self.saga.next().is_none() && self.saga.rejection() == Some(&Rejection::Busy)
    }

    /// How the buyer sees it.
    pub fn view(&self) -> PurchaseView {
        PurchaseView {
            id: self.id.clone(),
            status: self.saga.status(),
            buyer: self.order.buyer.clone(),
            items: self.order.items.clone(),
            tickets: self.saga.tickets().to_vec(),
            amount: self.saga.amount(),
            reason: self.saga.rejection().map(|why| why.slug().to_owned()),
            timings: self.timings,
        }
    }
}

/// What the buyer was answered when the purchase was over; kept, and given again to whoever repeats the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalAnswer {
    /// The HTTP status.
    pub http_status: u16,
    /// The media type.
    pub content_type: String,
    /// The body, byte for byte.
    pub body: String,
}

/// The wall clock, in the resolution that both databases keep.
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// SHA-256 over the parts in a row, in lower-case hex.
fn sha256_hex(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(buyer: &str, key: &str, quantity: u64) -> Order {
        let body = serde_json::json!({
            "buyer": buyer, "card": "card_ok", "items": [{ "event_id": "gala", "quantity": quantity }],
        });
        let key = IdempotencyKey::parse(key).expect("a key");
        Order::new(serde_json::from_value(body).expect("an order"), &key)
    }

    #[test]
    fn the_lock_is_that_of_the_buyer_and_the_key() {
        let name = order("ann", "k", 1).lock_name();
        assert_eq!(name, order("ann", "k", 2).lock_name());
        assert_ne!(name, order("ann", "k2", 1).lock_name());
        assert_ne!(name, order("annk", "k", 1).lock_name());
        assert_eq!(name.len(), "purchase/".len() + 64);
    }

    #[test]
    fn the_fingerprint_is_that_of_the_wish_and_not_of_the_key() {
        assert_eq!(
            order("ann", "k", 1).fingerprint,
            order("ann", "other", 1).fingerprint
        );
        assert_ne!(order("ann", "k", 1).fingerprint, order("ann", "k", 2).fingerprint);
        assert_ne!(order("ann", "k", 1).fingerprint, order("bob", "k", 1).fingerprint);
    }
}
