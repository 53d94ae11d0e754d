//! The purchase saga: one purchase from the wish to the tickets, over two services that can each fail, as a
//! pure machine. No clock, no I/O: [`Saga::next`] says what to do, [`Saga::record`] takes in what came of it.
//!
//! # Input
//! A buyer, a cart and a card. They stand in the purchase's row and never change, so the machine does not
//! carry them; its first state is [`Saga::begin`].
//!
//! # Steps, and the undo beside each
//!
//! | do | undo | asked of | can be refused |
//! |---|---|---|---|
//! | place hold | release hold | inventory | sold out, limit, unknown event, … |
//! | authorize | void payment | billing | declined |
//! | **confirm hold** (the pivot) | none | inventory | only when the hold had expired |
//! | capture | (refund, when a buyer cancels) | billing | no |
//!
//! # Order
//! ```text
//!  place hold ──▶ authorize ──▶ confirm hold ══▶ capture ──▶ completed ─ ─ cancel ─ ─▶ refund ──▶ cancelled
//!      │refused        │refused        │expired
//!      ▼               ▼               ▼
//!   rejected ◀── release hold ◀── void payment
//! ```
//! Up to the pivot there is a way back, after it only a way forward. The order is chosen for that: before the
//! pivot everything can be undone (a hold, a reservation on a card); what follows the pivot cannot be refused
//! (reserved money can be taken), only be slow.
//!
//! # Three rules
//! 1. **A timeout is [`Outcome::Unknown`], never "failed".** The step is asked again, with the same id, until
//!    there is an answer. Undoing on a timeout would give seats away that the buyer is about to own.
//! 2. **Undo covers what *may* have been done.** A state remembers that its step was `asked` without an answer;
//!    leaving it backwards then undoes that step too. Undoing also closes the id, so that a delayed first
//!    request that arrives later finds it used up.
//! 3. **What is found in the book was perhaps asked.** Each record is written before the next step is taken, so
//!    a crash loses at most the answer of one step; [`Saga::resume`] marks exactly that one as asked.
//!
//! # Implementations and tests
//! `domain/steps.rs` makes the calls, `domain/driver.rs` goes round the loop. The tests beside this file drive
//! the machine through a simulated world: fail at every step, repeat every step, crash after every write.

mod step;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use serde::{Deserialize, Serialize};
use ticketing_types::checkout::PurchaseStatus;
use ticketing_types::{Money, inventory::Ticket};

pub use step::{Done, Outcome, Rejection, Step};

/// One purchase under way, or ended. Serialises into the purchase's row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Saga {
    state: State,
}

/// Where it stands: each state is named for the step that comes next, and carries just what is known by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
enum State {
    PlacingHold { asked: bool },
    Authorizing { amount: Money, asked: bool },
    // The pivot. Once it was asked for there is no undo, except that an expired hold says it never happened.
    ConfirmingHold { amount: Money, asked: bool },
    Capturing { amount: Money, tickets: Vec<Ticket> },
    Completed { amount: Money, tickets: Vec<Ticket> },

    VoidingPayment { amount: Money, why: Rejection },
    ReleasingHold { amount: Option<Money>, why: Rejection },
    Rejected { amount: Option<Money>, why: Rejection },

    Refunding { amount: Money, tickets: Vec<Ticket> },
    Cancelled { amount: Money, tickets: Vec<Ticket> },
}

impl Saga {
    /// A purchase that nobody has asked anything for yet.
    pub fn begin() -> Self {
        Self {
            state: State::PlacingHold { asked: false },
        }
    }

    /// A saga found in the book, by somebody who does not know how far its last driver came (rule 3).
    pub fn resume(mut self) -> Self {
        if let State::PlacingHold { asked }
        | State::Authorizing { asked, .. }
        | State::ConfirmingHold { asked, .. } = &mut self.state
        {
            *asked = true;
        }
        self
    }

    /// What to do next; `None` when it is over.
    pub fn next(&self) -> Option<Step> {
        match self.state {
            State::PlacingHold { .. } => Some(Step::PlaceHold),
            State::Authorizing { amount, .. } => Some(Step::Authorize { amount }),
            State::ConfirmingHold { .. } => Some(Step::ConfirmHold),
            State::Capturing { .. } => Some(Step::Capture),
            State::VoidingPayment { .. } => Some(Step::VoidPayment),
            State::ReleasingHold { .. } => Some(Step::ReleaseHold),
            State::Refunding { amount, .. } => Some(Step::Refund { amount }),
            State::Completed { .. } | State::Rejected { .. } | State::Cancelled { .. } => None,
        }
    }

    /// Takes in what came of `step`, which must be the one that [`Saga::next`] named.
    ///
    /// # Panics
    /// When `step` is another one, or was answered with what another step brings: the driver is wrong then,
    /// and going on would move money on a misunderstanding.
    pub fn record(&mut self, step: Step, outcome: Outcome) {
        assert_eq!(
            self.next(),
            Some(step),
            "a step was recorded that nobody was told to take"
        );
        let state = std::mem::replace(&mut self.state, State::PlacingHold { asked: true });
        self.state = match outcome {
            Outcome::Done(done) => after_done(state, done),
            Outcome::Rejected(why) => after_rejected(state, why),
            Outcome::Unknown => after_unknown(state),
            Outcome::Busy => after_busy(state),
        };
    }

    /// The buyer calls it off. Says whether that changes the course: until the pivot is asked for it turns around,
    /// when completed the money is given back. Between the two it must first be completed: ask again then.
    pub fn cancel(&mut self) -> bool {
        let why = Rejection::Cancelled;
        let turned = match &self.state {
            // Also when nothing was asked yet: releasing closes the id, which is what makes it final.
            State::PlacingHold { .. } => State::ReleasingHold { amount: None, why },
            &(State::Authorizing { amount, .. } | State::ConfirmingHold { amount, asked: false }) => {
                State::VoidingPayment { amount, why }
            }
            State::Completed { amount, tickets } => State::Refunding {
                amount: *amount,
                tickets: tickets.clone(),
            },
            State::ConfirmingHold { asked: true, .. }
            | State::Capturing { .. }
            | State::VoidingPayment { .. }
            | State::ReleasingHold { .. }
            | State::Rejected { .. }
            | State::Refunding { .. }
            | State::Cancelled { .. } => return false,
        };
        self.state = turned;
        true
    }

    /// How it stands, in the buyer's words.
    pub fn status(&self) -> PurchaseStatus {
        match self.state {
            State::Completed { .. } => PurchaseStatus::Completed,
            State::Rejected { .. } => PurchaseStatus::Rejected,
            State::Cancelled { .. } => PurchaseStatus::Cancelled,
            _ => PurchaseStatus::Pending,
        }
    }

    /// What it costs, once the hold has said so.
    pub fn amount(&self) -> Option<Money> {
        match self.state {
            State::PlacingHold { .. } => None,
            State::ReleasingHold { amount, .. } | State::Rejected { amount, .. } => amount,
            State::Authorizing { amount, .. }
            | State::ConfirmingHold { amount, .. }
            | State::Capturing { amount, .. }
            | State::Completed { amount, .. }
            | State::VoidingPayment { amount, .. }
            | State::Refunding { amount, .. }
            | State::Cancelled { amount, .. } => Some(amount),
        }
    }

    /// The tickets, once the hold was confirmed.
    pub fn tickets(&self) -> &[Ticket] {
        match &self.state {
            State::Capturing { tickets, .. }
            | State::Completed { tickets, .. }
            | State::Refunding { tickets, .. }
            | State::Cancelled { tickets, .. } => tickets,
            _ => &[],
        }
    }

    /// Why it was rejected, or is being undone.
    pub fn rejection(&self) -> Option<&Rejection> {
        match &self.state {
            State::VoidingPayment { why, .. }
            | State::ReleasingHold { why, .. }
            | State::Rejected { why, .. } => Some(why),
            _ => None,
        }
    }
}

fn after_done(state: State, done: Done) -> State {
    match (state, done) {
        (State::PlacingHold { .. }, Done::HoldPlaced { amount }) => {
            State::Authorizing { amount, asked: false }
        }
        (State::Authorizing { amount, .. }, Done::Authorized) => {
            State::ConfirmingHold { amount, asked: false }
        }
        (State::ConfirmingHold { amount, .. }, Done::HoldConfirmed { tickets }) => {
            State::Capturing { amount, tickets }
        }
        (State::Capturing { amount, tickets }, Done::Captured) => State::Completed { amount, tickets },
        (State::VoidingPayment { amount, why }, Done::PaymentVoided) => State::ReleasingHold {
            amount: Some(amount),
            why,
        },
        (State::ReleasingHold { amount, why }, Done::HoldReleased) => State::Rejected { amount, why },
        (State::Refunding { amount, tickets }, Done::Refunded) => State::Cancelled { amount, tickets },
        (state, done) => panic!("{state:?} cannot be left by {done:?}"),
    }
}

fn after_rejected(state: State, why: Rejection) -> State {
    match state {
        // Had the earlier attempt arrived, this one had not been refused. But it may still be under way, and would
        // then hold seats for nobody: close its id.
        State::PlacingHold { asked: true } => State::ReleasingHold { amount: None, why },
        State::PlacingHold { asked: false } => State::Rejected { amount: None, why },
        State::Authorizing { amount, asked: true } => State::VoidingPayment { amount, why },
        State::Authorizing { amount, asked: false } => State::ReleasingHold {
            amount: Some(amount),
            why,
        },
        State::ConfirmingHold { amount, .. } => State::VoidingPayment { amount, why },
        // These cannot be refused, and have no way back. If one is, a human must look: the purchase stays
        // unfinished, in everybody's sight, and is asked for again until it works.
        stuck @ (State::Capturing { .. }
        | State::VoidingPayment { .. }
        | State::ReleasingHold { .. }
        | State::Refunding { .. }) => stuck,
        State::Completed { .. } | State::Rejected { .. } | State::Cancelled { .. } => {
            unreachable!("an ended saga has no next step to record")
        }
    }
}

fn after_unknown(state: State) -> State {
    match state {
        State::PlacingHold { .. } => State::PlacingHold { asked: true },
        State::Authorizing { amount, .. } => State::Authorizing { amount, asked: true },
        State::ConfirmingHold { amount, .. } => State::ConfirmingHold { amount, asked: true },
        same => same,
    }
}

fn after_busy(state: State) -> State {
    match state {
        // Nothing was ever asked with effect, so there is nothing to undo: the buyer may try again.
        State::PlacingHold { asked: false } => State::Rejected {
            amount: None,
            why: Rejection::Busy,
        },
        same => same,
    }
}
