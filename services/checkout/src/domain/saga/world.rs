//! The world of the saga's tests: an inventory and a billing that know ids, as the real ones do, and that count,
//! as the audit does.

use ticketing_types::checkout::PurchaseStatus;
use ticketing_types::inventory::Ticket;
use ticketing_types::{Currency, EventId, Money, TicketId};

use super::{Done, Outcome, Rejection, Saga, Step};

pub(super) const SEATS: usize = 2;

pub(super) fn price() -> Money {
    Money::new(5_000, Currency::parse("EUR").expect("a code")).expect("not negative")
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    Fair,
    /// The call never arrives.
    LostRequest,
    /// The call arrives when nobody waits for its answer any more: after all is over.
    Late,
    /// The call does its work, the answer is lost.
    LostReply,
    /// The call arrives, and arrives again later.
    Twice,
    /// The service says that it did nothing.
    Busy,
    /// The service refuses, if it still can.
    Refused,
    /// The hold runs out just before the call arrives.
    HoldExpires,
}

pub(super) const STORMS: [Weather; 7] = [
    Weather::LostRequest,
    Weather::Late,
    Weather::LostReply,
    Weather::Twice,
    Weather::Busy,
    Weather::Refused,
    Weather::HoldExpires,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Never,
    Placed,
    Confirmed,
    Released,
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payment {
    Never,
    Authorized,
    Declined,
    Captured,
    Voided,
    Refunded,
}

/// Inventory, billing and the gateway, as far as one purchase can see them.
#[derive(Debug)]
pub(super) struct World {
    pub(super) hold: Hold,
    pub(super) payment: Payment,
    tickets: usize,
    captured: i64,
    refunded: i64,
    pub(super) captures: usize,
    /// Requests that the network delivers again, at the very end.
    delayed: Vec<Step>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            hold: Hold::Never,
            payment: Payment::Never,
            tickets: 0,
            captured: 0,
            refunded: 0,
            captures: 0,
            delayed: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, step: Step, weather: Weather) -> Outcome {
        match weather {
            Weather::Fair => self.serve(step, false),
            Weather::LostRequest => Outcome::Unknown,
            Weather::Late => {
                self.delayed.push(step);
                Outcome::Unknown
            }
            Weather::LostReply => {
                self.serve(step, false);
                Outcome::Unknown
            }
            Weather::Twice => {
                self.delayed.push(step);
                self.serve(step, false)
            }
            Weather::Busy => Outcome::Busy,
            Weather::Refused => self.serve(step, true),
            Weather::HoldExpires => {
                if self.hold == Hold::Placed {
                    self.hold = Hold::Expired;
                }
                self.serve(step, false)
            }
        }
    }

    /// The services' own rules (DESIGN §5.2, §5.3): the same id again is the same answer, an undone id is closed.
    fn serve(&mut self, step: Step, refuse: bool) -> Outcome {
        let hold_expired = Outcome::Rejected(Rejection::HoldExpired);
        match step {
            Step::PlaceHold => match self.hold {
                Hold::Never if refuse => return Outcome::Rejected(Rejection::SoldOut { lines: vec![] }),
                Hold::Never => self.hold = Hold::Placed,
                Hold::Placed | Hold::Confirmed => {}
                Hold::Released | Hold::Expired => return hold_expired,
            },
            Step::Authorize { .. } => match self.payment {
                Payment::Never if refuse => {
                    self.payment = Payment::Declined;
                    return Outcome::Rejected(Rejection::PaymentDeclined);
                }
                Payment::Never => self.payment = Payment::Authorized,
                Payment::Authorized | Payment::Captured => {}
                Payment::Declined | Payment::Voided | Payment::Refunded => {
                    return Outcome::Rejected(Rejection::PaymentDeclined);
                }
            },
            Step::ConfirmHold => match self.hold {
                Hold::Placed => {
                    self.hold = Hold::Confirmed;
                    self.tickets += SEATS;
                }
                Hold::Confirmed => {}
                Hold::Never | Hold::Released | Hold::Expired => return hold_expired,
            },
            Step::Capture => match self.payment {
                Payment::Authorized => {
                    self.payment = Payment::Captured;
                    self.captured += price().amount_minor();
                    self.captures += 1;
                }
                Payment::Captured | Payment::Refunded => {}
                Payment::Never | Payment::Declined | Payment::Voided => {
                    panic!("a capture of what is not reserved: {self:?}")
                }
            },
            Step::VoidPayment => match self.payment {
                Payment::Never | Payment::Authorized | Payment::Declined => self.payment = Payment::Voided,
                Payment::Voided => {}
                Payment::Captured | Payment::Refunded => panic!("a void of taken money: {self:?}"),
            },
            Step::ReleaseHold => match self.hold {
                Hold::Never | Hold::Placed => self.hold = Hold::Released,
                Hold::Released | Hold::Expired => {}
                Hold::Confirmed => panic!("a release of tickets: {self:?}"),
            },
            Step::Refund { amount } => match self.payment {
                Payment::Captured => {
                    self.payment = Payment::Refunded;
                    self.refunded += amount.amount_minor();
                }
                Payment::Refunded => {}
                _ => panic!("a refund of what was not taken: {self:?}"),
            },
        }
        Outcome::Done(match step {
            Step::PlaceHold => Done::HoldPlaced { amount: price() },
            Step::Authorize { .. } => Done::Authorized,
            Step::ConfirmHold => Done::HoldConfirmed { tickets: tickets() },
            Step::Capture => Done::Captured,
            Step::VoidPayment => Done::PaymentVoided,
            Step::ReleaseHold => Done::HoldReleased,
            Step::Refund { .. } => Done::Refunded,
        })
    }

    /// What the network kept back arrives after everything is over.
    pub(super) fn deliver_the_delayed(&mut self) {
        for step in std::mem::take(&mut self.delayed) {
            self.serve(step, false);
        }
    }

    /// The promises of DESIGN §8, for one purchase at rest.
    pub(super) fn check(&self, saga: &Saga) {
        let kept = self.captured - self.refunded;
        assert!(self.captures <= 1, "charged twice: {self:?}");
        match saga.status() {
            PurchaseStatus::Completed => {
                assert_eq!((self.tickets, kept), (SEATS, price().amount_minor()), "{self:?}");
                assert_eq!((self.hold, self.payment), (Hold::Confirmed, Payment::Captured));
                assert_eq!(saga.tickets().len(), SEATS);
            }
            PurchaseStatus::Rejected => {
                assert_eq!((self.tickets, self.captured), (0, 0), "{self:?}");
                assert!(
                    !matches!(self.hold, Hold::Placed | Hold::Confirmed),
                    "stock is stuck: {self:?}"
                );
                assert_ne!(self.payment, Payment::Authorized, "money is stuck: {self:?}");
            }
            PurchaseStatus::Cancelled => {
                assert_eq!((kept, self.payment), (0, Payment::Refunded), "{self:?}");
            }
            PurchaseStatus::Pending => panic!("unfinished: {saga:?}"),
        }
    }
}

pub(super) fn tickets() -> Vec<Ticket> {
    (0..SEATS)
        .map(|n| Ticket {
            id: TicketId::parse(format!("t-{n}")).expect("an id"),
            event_id: EventId::parse("gala").expect("an id"),
        })
        .collect()
}
