//! What a round is to be: how many seats, how many buyers, guarded how.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use ticketing_types::billing::Card;
use ticketing_types::{Buyer, Cart, EventId, FaultSpec, Line, PaymentKey, Quantity, Strategy};

use crate::{Order, Seed};

/// Tells one round from all others ever run against the same books: 12 characters of `0-9a-f`. The seed alone
/// would not do: the same seed twice must sell two different events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// One that nobody has used.
    pub fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string()[..12].to_owned())
    }

    /// A given one, for tests. Everything but lower-case letters and digits is left out.
    pub fn named(text: &str) -> Self {
        let fits = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
        Self(text.chars().filter(fits).take(12).collect())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How big the retry storm is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StormPlan {
    /// Buyers who send the same purchase three times in parallel, with one key.
    pub triples: u32,
    /// Buyers whose card loses the gateway's reply, who lose patience, and who ask again with the same key.
    pub lost_replies: u32,
}

impl Default for StormPlan {
    fn default() -> Self {
        Self {
            triples: 20,
            lost_replies: 20,
        }
    }
}

/// One round: one strategy, one burst, and perhaps a storm.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which run this is.
    pub run: RunId,
    /// Who buys with what is drawn from here.
    pub seed: u64,
    /// How the critical sections are guarded.
    pub strategy: Strategy,
    /// How payment keys are made; `None` leaves it to the strategy.
    pub payment_key: Option<PaymentKey>,
    /// Seats.
    pub capacity: u32,
    /// Buyers of the burst; each wants one ticket and can pay.
    pub buyers: u32,
    /// The retry storm after the burst; `None` for no storm.
    pub storm: Option<StormPlan>,
    /// A fault that travels with every purchase of the round, such as
    /// `inventory.critical-section=delay=5ms` to widen the window. `None` is the honest race.
    pub fault: Option<FaultSpec>,
    /// How long a buyer of the burst waits for its answer. Longer than the services' own budgets, so that
    /// they get to say what happened.
    pub request_timeout: Duration,
    /// How long to wait for rest: longer than a hold lives, or an expired hold would look like a broken promise.
    pub rest_timeout: Duration,
}

impl Plan {
    /// 100 seats, 1,000 buyers, a storm of the usual size, seed 1.
    pub fn new(run: RunId, strategy: Strategy) -> Self {
        Self {
            run,
            seed: 1,
            strategy,
            payment_key: None,
            capacity: 100,
            buyers: 1000,
            storm: Some(StormPlan::default()),
            fault: None,
            request_timeout: Duration::from_secs(90),
            rest_timeout: Duration::from_secs(90),
        }
    }

    /// How payment keys are made in this round.
    pub fn payment_key(&self) -> PaymentKey {
        self.payment_key.unwrap_or(self.strategy.default_payment_key())
    }

    /// The event of the burst.
    pub fn event_id(&self) -> EventId {
        self.named_event("round")
    }

    /// The event of the storm.
    pub fn storm_event_id(&self) -> EventId {
        self.named_event("storm")
    }

    /// Seats of the storm's event: enough for every attempt to become a purchase of its own, which is just
    /// what happens when nothing guards the key.
    pub fn storm_capacity(&self) -> u32 {
        self.storm
            .map_or(1, |storm| {
                storm.triples * 3 + storm.lost_replies * crate::storm::ATTEMPTS_MAX
            })
            .max(1)
    }

    /// What buyer number `index` of the burst sends.
    pub fn burst_order(&self, index: u32) -> Order {
        self.order("burst", self.event_id(), index, Card::CardOk)
    }

    /// What buyer number `index` of the storm's triples sends three times.
    pub fn triple_order(&self, index: u32) -> Order {
        self.order("triple", self.storm_event_id(), index, Card::CardOk)
    }

    /// What buyer number `index` of those with the lost reply sends until it knows.
    pub fn lost_reply_order(&self, index: u32) -> Order {
        self.order("lost", self.storm_event_id(), index, Card::CardLostReply)
    }

    /// What the buyer sends who tries the strategy before the burst.
    pub(crate) fn probe_order(&self, event_id: EventId) -> Order {
        let order = self.order("probe", event_id, 0, Card::CardOk);
        Order { fault: None, ..order }
    }

    /// The event of the probe: one seat.
    pub(crate) fn probe_event_id(&self) -> EventId {
        self.named_event("probe")
    }

    fn named_event(&self, what: &str) -> EventId {
        EventId::parse(format!("{what}-{}-{}", self.run, self.seed))
            .expect("at most 40 lower-case characters, digits and dashes")
    }

    fn order(&self, group: &'static str, event_id: EventId, index: u32, card: Card) -> Order {
        let draw = Seed(self.seed).draw(group, u64::from(index));
        let line = Line {
            event_id,
            quantity: Quantity::try_from(1).expect("1 is a quantity"),
        };
        Order {
            group,
            index,
            idempotency_key: format!("{}-{group}-{index}-{draw:016x}", self.run),
            buyer: Buyer::parse(format!("{group}-{index}-{}", self.run))
                .expect("short, no control characters"),
            items: Cart::try_from(vec![line]).expect("one line"),
            card,
            strategy: self.strategy,
            payment_key: self.payment_key,
            fault: self.fault.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_run_give_the_same_orders_again() {
        let plan = || Plan::new(RunId::named("a1"), Strategy::Raft);
        assert_eq!(plan().burst_order(5), plan().burst_order(5));
        let other = Plan { seed: 2, ..plan() };
        assert_ne!(
            plan().burst_order(5).idempotency_key,
            other.burst_order(5).idempotency_key
        );
        assert_ne!(plan().event_id(), other.event_id());
        assert_ne!(plan().event_id(), plan().storm_event_id());
    }

    #[test]
    fn the_largest_seed_still_makes_an_event_id() {
        let plan = Plan {
            seed: u64::MAX,
            ..Plan::new(RunId::fresh(), Strategy::None)
        };
        assert!(plan.event_id().as_str().len() <= 64);
        assert!(plan.storm_event_id().as_str().contains(&u64::MAX.to_string()));
    }
}
