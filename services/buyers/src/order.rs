//! One buyer's purchase, ready to send: as often as the buyer likes, always under the same key.

use reqwest::RequestBuilder;
use ticketing_types::billing::Card;
use ticketing_types::checkout::BuyTickets;
use ticketing_types::{Buyer, Cart, FaultSpec, PaymentKey, Strategy, header};

/// What one buyer wants, and how the suite is to guard it.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Which part of the round it belongs to: `burst`, `triple`, `lost`, `probe`.
    pub group: &'static str,
    /// Its number in the group.
    pub index: u32,
    /// The key that makes a repeat a repeat.
    pub idempotency_key: String,
    /// Who buys.
    pub buyer: Buyer,
    /// What.
    pub items: Cart,
    /// With what.
    pub card: Card,
    /// Guarded how.
    pub strategy: Strategy,
    /// How payment keys are made, when the round says so.
    pub payment_key: Option<PaymentKey>,
    /// A fault that travels with it.
    pub fault: Option<FaultSpec>,
}

impl Order {
    /// Where it is sent.
    pub const PATH: &'static str = "/v1/purchases";

    /// The body.
    pub fn body(&self) -> BuyTickets {
        BuyTickets {
            buyer: self.buyer.clone(),
            items: self.items.clone(),
            card: self.card,
        }
    }

    /// The headers, as name and value.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            (header::IDEMPOTENCY_KEY, self.idempotency_key.clone()),
            (header::LOCK_STRATEGY, self.strategy.name().to_owned()),
        ];
        headers.extend(
            self.payment_key
                .map(|key| (header::PAYMENT_KEY, key.name().to_owned())),
        );
        headers.extend(
            self.fault
                .as_ref()
                .map(|fault| (header::FAULT, fault.to_string())),
        );
        headers
    }

    /// Puts body and headers on a `POST` to [`Order::PATH`] that somebody else began.
    pub fn dress(&self, request: RequestBuilder) -> RequestBuilder {
        self.headers()
            .into_iter()
            .fold(request, |request, (name, value)| request.header(name, value))
            .json(&self.body())
    }
}
