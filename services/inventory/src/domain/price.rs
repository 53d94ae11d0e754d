//! What a cart costs. Pure.

use ticketing_types::Money;

use super::error::PlaceHoldError;

/// What never changes about an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offer {
    pub(crate) price: Money,
    pub(crate) max_per_buyer: Option<i64>,
}

/// The sum over (price, quantity), which must be of one currency and fit 63 bits.
pub(crate) fn total(lines: impl IntoIterator<Item = (Money, u32)>) -> Result<Money, PlaceHoldError> {
    let mut total: Option<Money> = None;
    for (price, quantity) in lines {
        if total.is_some_and(|total| total.currency() != price.currency()) {
            return Err(PlaceHoldError::MixedCurrencies);
        }
        let line = price.times(quantity).ok_or(PlaceHoldError::AmountTooLarge)?;
        total = Some(match total {
            Some(total) => total.plus(line).ok_or(PlaceHoldError::AmountTooLarge)?,
            None => line,
        });
    }
    Ok(total.expect("a cart has at least one line"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ticketing_types::Currency;

    fn money(amount_minor: i64, code: &str) -> Money {
        Money::new(amount_minor, Currency::parse(code).expect("a code")).expect("not negative")
    }

    #[test]
    fn lines_are_multiplied_and_summed() {
        let sum = total([(money(250, "EUR"), 2), (money(1, "EUR"), 3)]).expect("it fits");
        assert_eq!(sum, money(503, "EUR"));
    }

    #[test]
    fn mixed_currencies_and_overflows_are_refused() {
        let mixed = total([(money(1, "EUR"), 1), (money(1, "USD"), 1)]);
        assert!(matches!(mixed, Err(PlaceHoldError::MixedCurrencies)), "{mixed:?}");
        let product = total([(money(i64::MAX, "EUR"), 2)]);
        assert!(
            matches!(product, Err(PlaceHoldError::AmountTooLarge)),
            "{product:?}"
        );
        let sum = total([(money(i64::MAX, "EUR"), 1), (money(1, "EUR"), 1)]);
        assert!(matches!(sum, Err(PlaceHoldError::AmountTooLarge)), "{sum:?}");
    }
}
