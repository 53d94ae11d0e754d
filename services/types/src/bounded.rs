//! Whole numbers with a range. JSON has one number type, so `1.5`, `"1"`, `null`, `-1` and `10³⁰` all arrive
//! where a quantity is expected: each is refused with a sentence that names the range.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::Invalid;

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident: $min:tt ..= $max:tt, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
        #[schema(value_type = u32, minimum = $min, maximum = $max)]
        pub struct $name(u32);

        impl $name {
            /// Smallest value.
            pub const MIN: u32 = $min;
            /// Largest value.
            pub const MAX: u32 = $max;

            /// The number.
            pub fn get(self) -> u32 {
                self.0
            }
        }

        impl TryFrom<u64> for $name {
            type Error = Invalid;
            fn try_from(n: u64) -> Result<Self, Invalid> {
                match u32::try_from(n) {
                    Ok(small) if (Self::MIN..=Self::MAX).contains(&small) => Ok(Self(small)),
                    _ => Err(Invalid::expected(concat!($what, " is a whole number from ", $min, " to ", $max))),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_u32(self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Range;
                impl Visitor<'_> for Range {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a whole number from ", $min, " to ", $max))
                    }
                    fn visit_u64<E: de::Error>(self, n: u64) -> Result<$name, E> {
                        $name::try_from(n).map_err(|_| E::invalid_value(Unexpected::Unsigned(n), &self))
                    }
                    fn visit_i64<E: de::Error>(self, n: i64) -> Result<$name, E> {
                        u64::try_from(n)
                            .map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
                            .and_then(|n| self.visit_u64(n))
                    }
                }
                d.deserialize_u64(Range)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

bounded!(
    /// Tickets on one line of a cart.
    Quantity: 1..=10, "a quantity"
);
bounded!(
    /// Seats of an event.
    Capacity: 1..=1_000_000, "a capacity"
);
bounded!(
    /// Tickets that one buyer may hold and own of one event.
    MaxPerBuyer: 1..=1_000_000, "max_per_buyer"
);
bounded!(
    /// How long a hold lasts, in milliseconds: up to one hour.
    HoldTtlMs: 1..=3_600_000, "ttl_ms"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_a_whole_number_from_1_to_10() {
        for good in ["1", "10"] {
            assert!(serde_json::from_str::<Quantity>(good).is_ok(), "{good}");
        }
        let two_to_the_63 = (1_u64 << 63).to_string();
        let ten_to_the_30 = format!("1{}", "0".repeat(30));
        for bad in [
            "0",
            "-1",
            "11",
            "1.5",
            "\"1\"",
            "null",
            "2147483648",
            &two_to_the_63,
            &ten_to_the_30,
        ] {
            let error = serde_json::from_str::<Quantity>(bad).expect_err(bad).to_string();
            assert!(error.contains("from 1 to 10"), "{bad}: {error}");
        }
    }
}
