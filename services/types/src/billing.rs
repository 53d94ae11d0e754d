//! Billing's bodies (DESIGN §5.3).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Buyer, Invalid, Money, PaymentId, RefundId, SectionTimings};

/// Test cards. Nobody's real number ever enters this project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Card {
    /// Pays.
    CardOk,
    /// Is declined.
    CardDeclined,
    /// Pays, and answers late.
    CardSlow,
    /// Charges, then drops the connection.
    CardLostReply,
    /// Fails with a 5xx before charging.
    CardFlaky,
}

impl Card {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::CardOk => "card_ok",
            Self::CardDeclined => "card_declined",
            Self::CardSlow => "card_slow",
            Self::CardLostReply => "card_lost_reply",
            Self::CardFlaky => "card_flaky",
        }
    }

    /// All test cards.
    pub const ALL: [Self; 5] = [
        Self::CardOk,
        Self::CardDeclined,
        Self::CardSlow,
        Self::CardLostReply,
        Self::CardFlaky,
    ];
}

/// Through a string, so that whatever is no card (`null` included) is refused with the names of those that are.
impl TryFrom<String> for Card {
    type Error = Invalid;
    fn try_from(name: String) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|card| card.name() == name)
            .ok_or_else(|| {
                Invalid::expected(format!("test cards are {}", Self::ALL.map(Self::name).join(", ")))
            })
    }
}

/// `PUT /v1/payments/{id}`: authorize.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuthorizePayment {
    /// Who pays.
    pub buyer: Buyer,
    /// How much.
    pub amount: Money,
    /// With what.
    pub card: Card,
}

/// Where a payment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    /// Claimed; the gateway's answer is not known yet.
    Authorizing,
    /// The money is reserved.
    Authorized,
    /// The money is taken.
    Captured,
    /// The reservation was given back, or the payment was closed before it began.
    Voided,
    /// The card was declined.
    Declined,
}

/// One payment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PaymentView {
    /// The payment.
    pub id: PaymentId,
    /// Where it stands.
    pub status: PaymentStatus,
    /// Who pays (absent when the payment was voided before it was ever asked for).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer: Option<Buyer>,
    /// How much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// Σ refunds, in minor units.
    pub refunded_minor: i64,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Where the time went.
    #[serde(default)]
    pub timings: SectionTimings,
}

/// `POST /v1/payments/{id}/refunds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RefundPayment {
    /// Chosen by the caller: the same id again is the same refund.
    pub id: RefundId,
    /// How much to give back.
    pub amount: Money,
}

/// One refund.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RefundView {
    /// The refund.
    pub id: RefundId,
    /// The payment.
    pub payment_id: PaymentId,
    /// How much was given back.
    pub amount: Money,
    /// What could still be given back.
    pub refundable_minor: i64,
}

/// One payment in billing's book, for the audit. Under `none` a payment may have several rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PaymentRecord {
    /// The payment.
    pub id: PaymentId,
    /// Where it stands.
    pub status: PaymentStatus,
    /// How much was captured, in minor units.
    pub captured_minor: i64,
    /// Σ refunds, in minor units.
    pub refunded_minor: i64,
}

/// `POST /v1/audit-records` of billing: up to 1,000 payments at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PaymentLookup {
    /// Which payments.
    pub payment_ids: Vec<PaymentId>,
}

/// The answer to [`PaymentLookup`]: payments that were never heard of are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BillingRecords {
    /// Every row of every payment asked for.
    pub payments: Vec<PaymentRecord>,
    /// Writes refused because a newer fencing token had been seen.
    pub stale_tokens_rejected: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_reads_back_as_itself_and_nothing_else_is_a_card() {
        for card in Card::ALL {
            let text = serde_json::to_string(&card).expect("plain data");
            assert_eq!(text, format!("\"{}\"", card.name()));
            assert_eq!(serde_json::from_str::<Card>(&text).expect("a card"), card);
        }
        let error = serde_json::from_str::<Card>("\"4111111111111111\"")
            .expect_err("no card")
            .to_string();
        assert!(error.contains("card_lost_reply"), "{error}");
        assert!(serde_json::from_str::<Card>("null").is_err());
    }
}
