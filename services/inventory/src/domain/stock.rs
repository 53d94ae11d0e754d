//! The comparison in the middle of the critical section. Pure.

use ticketing_types::EventId;

/// What a section reads of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) available: i64,
    pub(crate) version: i64,
    /// What the buyer has of it already, in holds and tickets. 0 where there is no limit: then it is not counted.
    pub(crate) held_or_owned: i64,
}

/// What a cart wants of one event, beside what the section read of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken<'a> {
    pub(crate) event_id: &'a EventId,
    pub(crate) quantity: i64,
    pub(crate) max_per_buyer: Option<i64>,
    pub(crate) stock: Stock,
}

/// Why a cart cannot be held.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Refusal {
    /// These events are short: (event, requested, available).
    Short(Vec<(EventId, i64, i64)>),
    /// The buyer would have too many of this event.
    Limit {
        event_id: EventId,
        limit: i64,
        held_or_owned: i64,
        requested: i64,
    },
}

/// All or nothing: what is wrong with the cart, or `None` if every event has enough for it.
///
/// The limit comes first. It is about the buyer and will not change by waiting, and stock may come back.
pub(crate) fn refuse(cart: &[Taken<'_>]) -> Option<Refusal> {
    let over = |line: &&Taken<'_>| {
        line.max_per_buyer
            .is_some_and(|limit| line.stock.held_or_owned + line.quantity > limit)
    };
    if let Some(line) = cart.iter().find(over) {
        return Some(Refusal::Limit {
            event_id: line.event_id.clone(),
            limit: line.max_per_buyer.unwrap_or_default(),
            held_or_owned: line.stock.held_or_owned,
            requested: line.quantity,
        });
    }
    let short: Vec<_> = cart
        .iter()
        .filter(|line| line.stock.available < line.quantity)
        .map(|line| (line.event_id.clone(), line.quantity, line.stock.available))
        .collect();
    (!short.is_empty()).then_some(Refusal::Short(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> EventId {
        EventId::parse(id).expect("an id")
    }

    fn taken(event_id: &EventId, quantity: i64, available: i64) -> Taken<'_> {
        let stock = Stock {
            available,
            version: 0,
            held_or_owned: 0,
        };
        Taken {
            event_id,
            quantity,
            max_per_buyer: None,
            stock,
        }
    }

    #[test]
    fn the_last_ticket_can_be_had_and_no_more() {
        let a = event("a");
        assert_eq!(refuse(&[taken(&a, 1, 1)]), None);
        assert_eq!(
            refuse(&[taken(&a, 2, 1)]),
            Some(Refusal::Short(vec![(a.clone(), 2, 1)]))
        );
        assert_eq!(
            refuse(&[taken(&a, 1, -3)]),
            Some(Refusal::Short(vec![(a.clone(), 1, -3)]))
        );
    }

    #[test]
    fn one_short_event_refuses_the_whole_cart_and_only_it_is_named() {
        let (a, b) = (event("a"), event("b"));
        let cart = [taken(&a, 1, 10), taken(&b, 2, 1)];
        assert_eq!(refuse(&cart), Some(Refusal::Short(vec![(b.clone(), 2, 1)])));
    }

    #[test]
    fn what_a_buyer_has_already_counts_against_the_limit() {
        let a = event("a");
        let mut line = taken(&a, 2, 10);
        line.max_per_buyer = Some(3);
        line.stock.held_or_owned = 1;
        assert_eq!(refuse(std::slice::from_ref(&line)), None);
        line.stock.held_or_owned = 2;
        let refusal = refuse(&[line]);
        assert!(matches!(
            refusal,
            Some(Refusal::Limit {
                limit: 3,
                held_or_owned: 2,
                requested: 2,
                ..
            })
        ));
    }
}
