//! Money: an amount in *minor units* and a currency of ISO 4217. No floats, anywhere: a cent lost in binary
//! rounding is a cent that no audit will find.
//!
//! What a minor unit is depends on the currency: 100 make a euro, 1 makes a yen, 1000 make a Kuwaiti dinar.
//! Only [`Money`]'s `Display` needs to know.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// A currency of ISO 4217, by its three-letter code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "EUR", pattern = "^[A-Z]{3}$")]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// Takes an upper-case code such as `EUR`; refuses codes that ISO 4217 does not list.
    pub fn parse(code: &str) -> Result<Self, Invalid> {
        iso_currency::Currency::from_code(code)
            .map(Self)
            .ok_or_else(|| Invalid::expected("a currency is a three-letter code of ISO 4217, such as EUR"))
    }

    /// The three letters.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// Digits after the decimal point (ISO 4217's exponent): 2 for EUR, 0 for JPY, 3 for KWD.
    pub fn exponent(self) -> u32 {
        self.0.exponent().map_or(0, u32::from)
    }
}

impl TryFrom<String> for Currency {
    type Error = Invalid;
    fn try_from(code: String) -> Result<Self, Invalid> {
        Self::parse(&code)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> String {
        currency.code().to_owned()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An amount that is never negative, in minor units of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "RawMoney")]
pub struct Money {
    /// Minor units (cents for EUR), 0 or more.
    #[schema(minimum = 0)]
    amount_minor: i64,
    currency: Currency,
}

#[derive(Deserialize)]
struct RawMoney {
    amount_minor: i64,
    currency: Currency,
}

impl TryFrom<RawMoney> for Money {
    type Error = Invalid;
    fn try_from(raw: RawMoney) -> Result<Self, Invalid> {
        Self::new(raw.amount_minor, raw.currency)
    }
}

impl Money {
    /// An amount of 0 or more minor units.
    pub fn new(amount_minor: i64, currency: Currency) -> Result<Self, Invalid> {
        if amount_minor < 0 {
            return Err(Invalid::expected("amount_minor is 0 or more"));
        }
        Ok(Self {
            amount_minor,
            currency,
        })
    }

    /// Nothing, in that currency.
    pub fn zero(currency: Currency) -> Self {
        Self {
            amount_minor: 0,
            currency,
        }
    }

    /// Minor units.
    pub fn amount_minor(self) -> i64 {
        self.amount_minor
    }

    /// The currency.
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// `self × n`; `None` when it does not fit 63 bits.
    pub fn times(self, n: u32) -> Option<Self> {
        let amount_minor = self.amount_minor.checked_mul(i64::from(n))?;
        Some(Self { amount_minor, ..self })
    }

    /// `self + other`; `None` when the currencies differ or the sum does not fit 63 bits.
    pub fn plus(self, other: Self) -> Option<Self> {
        if self.currency != other.currency {
            return None;
        }
        let amount_minor = self.amount_minor.checked_add(other.amount_minor)?;
        Some(Self { amount_minor, ..self })
    }
}

/// `12.50 EUR`, `1250 JPY`, `1.250 KWD`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exponent = self.currency.exponent();
        let unit = 10_i64.pow(exponent);
        let (whole, part) = (self.amount_minor / unit, self.amount_minor % unit);
        if exponent == 0 {
            write!(f, "{whole} {}", self.currency)
        } else {
            write!(
                f,
                "{whole}.{part:0width$} {}",
                self.currency,
                width = exponent as usize
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(amount_minor: i64, code: &str) -> Money {
        Money::new(amount_minor, Currency::parse(code).expect("a code")).expect("not negative")
    }

    #[test]
    fn every_currency_is_shown_with_its_own_exponent() {
        assert_eq!(money(1250, "EUR").to_string(), "12.50 EUR");
        assert_eq!(money(5, "USD").to_string(), "0.05 USD");
        assert_eq!(money(1250, "JPY").to_string(), "1250 JPY");
        assert_eq!(money(1250, "KWD").to_string(), "1.250 KWD");
    }

    #[test]
    fn arithmetic_refuses_to_overflow_or_to_mix_currencies() {
        assert_eq!(money(i64::MAX, "EUR").times(2), None);
        assert_eq!(money(1, "EUR").plus(money(1, "USD")), None);
        assert_eq!(money(i64::MAX, "EUR").plus(money(1, "EUR")), None);
        assert_eq!(money(2, "EUR").times(3), Some(money(6, "EUR")));
    }

    #[test]
    fn a_negative_amount_and_an_unknown_currency_are_refused() {
        assert!(serde_json::from_str::<Money>(r#"{"amount_minor":-1,"currency":"EUR"}"#).is_err());
        assert!(serde_json::from_str::<Money>(r#"{"amount_minor":1,"currency":"XYZW"}"#).is_err());
        assert!(serde_json::from_str::<Money>(r#"{"amount_minor":1.5,"currency":"EUR"}"#).is_err());
    }
}
