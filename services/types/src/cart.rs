//! What is bought: 1 to 10 lines. The same event may stand on two lines; the lines are summed before anything
//! is checked, or a limit could be passed by writing the same wish twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EventId, Invalid, Quantity};

/// One line of a cart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Line {
    /// The event.
    pub event_id: EventId,
    /// How many tickets, 1 to 10.
    pub quantity: Quantity,
}

/// 1 to 10 lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "Vec<Line>", into = "Vec<Line>")]
#[schema(value_type = Vec<Line>, min_items = 1, max_items = 10)]
pub struct Cart(Vec<Line>);

impl Cart {
    /// Most lines a cart may have.
    pub const LINES_MAX: usize = 10;

    /// The lines as they were sent.
    pub fn lines(&self) -> &[Line] {
        &self.0
    }

    /// Tickets wanted per event, in the order of the event ids (one order for all carts: row locks taken in
    /// it cannot deadlock).
    pub fn by_event(&self) -> BTreeMap<&EventId, u32> {
        let mut wanted = BTreeMap::new();
        for line in &self.0 {
            *wanted.entry(&line.event_id).or_insert(0) += line.quantity.get();
        }
        wanted
    }
}

impl TryFrom<Vec<Line>> for Cart {
    type Error = Invalid;
    fn try_from(lines: Vec<Line>) -> Result<Self, Invalid> {
        if (1..=Self::LINES_MAX).contains(&lines.len()) {
            Ok(Self(lines))
        } else {
            Err(Invalid::expected("a cart has 1 to 10 lines"))
        }
    }
}

impl From<Cart> for Vec<Line> {
    fn from(cart: Cart) -> Vec<Line> {
        cart.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, quantity: u64) -> Line {
        Line {
            event_id: EventId::parse(event).expect("id"),
            quantity: Quantity::try_from(quantity).expect("quantity"),
        }
    }

    #[test]
    fn a_cart_has_1_to_10_lines() {
        assert!(Cart::try_from(vec![]).is_err());
        assert!(Cart::try_from(vec![line("a", 1); 11]).is_err());
        assert!(Cart::try_from(vec![line("a", 1); 10]).is_ok());
    }

    #[test]
    fn two_lines_of_one_event_are_summed() {
        let cart = Cart::try_from(vec![line("b", 2), line("a", 1), line("b", 3)]).expect("3 lines");
        let wanted: Vec<_> = cart
            .by_event()
            .into_iter()
            .map(|(id, n)| (id.as_str(), n))
            .collect();
        assert_eq!(wanted, [("a", 1), ("b", 5)]);
    }
}
