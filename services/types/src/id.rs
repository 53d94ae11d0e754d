//! Ids. Those we make are UUIDv7 (they sort by time); a caller may bring its own: 1–64 of `a-z0-9-`.
//!
//! A purchase's id *is* its hold's id and its payment's id (DESIGN §5.4): one name for one intention, so
//! that every hop and every retry asks about the same thing. [`PurchaseId::hold`] and
//! [`PurchaseId::payment`] say so in types.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// Longest id a caller may bring, in bytes.
pub const ID_LEN_MAX: usize = 64;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[a-z0-9-]{1,64}$")]
        pub struct $name(String);

        impl $name {
            /// Takes 1 to 64 characters of `a-z0-9-`; refuses anything else.
            pub fn parse(text: impl Into<String>) -> Result<Self, Invalid> {
                let text = text.into();
                let fits = (1..=ID_LEN_MAX).contains(&text.len())
                    && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
                if fits {
                    Ok(Self(text))
                } else {
                    Err(Invalid::expected(concat!(stringify!($name), " is 1 to 64 characters of a-z, 0-9 and -")))
                }
            }

            /// A fresh UUIDv7 from the bits the caller drew (this crate has no clock and no randomness).
            pub fn from_uuid(id: uuid::Uuid) -> Self {
                Self(id.hyphenated().to_string())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(text: String) -> Result<Self, Invalid> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::parse(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A show that tickets are sold for.
    EventId
);
id!(
    /// A temporary claim on stock.
    HoldId
);
id!(
    /// A permanent right to one seat.
    TicketId
);
id!(
    /// One authorization and what followed from it.
    PaymentId
);
id!(
    /// One refund of a payment; chosen by the caller, so that a repeat is recognised.
    RefundId
);
id!(
    /// One buyer's attempt to buy one cart.
    PurchaseId
);

impl PurchaseId {
    /// The hold of this purchase: the same text.
    pub fn hold(&self) -> HoldId {
        HoldId(self.0.clone())
    }

    /// The payment of this purchase: the same text.
    pub fn payment(&self) -> PaymentId {
        PaymentId(self.0.clone())
    }
}

/// Who buys: 1 to 128 bytes of UTF-8 without control characters (a name, a mail address, an id).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 128, example = "alice")]
pub struct Buyer(String);

impl Buyer {
    /// Longest buyer, in bytes.
    pub const LEN_MAX: usize = 128;

    /// Takes 1 to 128 bytes without control characters.
    pub fn parse(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        if (1..=Self::LEN_MAX).contains(&text.len()) && !text.chars().any(char::is_control) {
            Ok(Self(text))
        } else {
            Err(Invalid::expected(
                "a buyer is 1 to 128 bytes without control characters",
            ))
        }
    }

    /// The buyer as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Buyer {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl From<Buyer> for String {
    fn from(buyer: Buyer) -> String {
        buyer.0
    }
}

impl fmt::Display for Buyer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_1_to_64_of_lower_case_digits_and_dashes() {
        assert!(EventId::parse("gala-2026").is_ok());
        assert!(EventId::parse("a".repeat(64)).is_ok());
        for bad in ["", "Gala", "a b", "a/b", "..", "ü", &"a".repeat(65)] {
            assert!(EventId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_purchase_its_hold_and_its_payment_have_one_name() {
        let id = PurchaseId::parse("p-1").expect("valid");
        assert_eq!(id.hold().as_str(), id.payment().as_str());
    }
}
