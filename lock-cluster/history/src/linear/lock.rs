//! One lock with tokens, used by one client at a time: what every operation may answer, and what it changes.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use todc_utils::specifications::Specification;

use crate::Attempt;

/// What was done to the lock, and what it answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// This token had been given to somebody, whoever holds now.
    Given(u64),
    /// Somebody got it, under this token.
    Acquired(Attempt, u64),
    /// Somebody may have got it; if the answer comes later, under this token.
    MayAcquire(Attempt, Option<u64>),
    /// Somebody who would not wait did not get it.
    FoundHeld,
    /// Its holder gave it back, and was told so.
    Released(Attempt, u64),
    /// An attempt that may hold is over: it does not hold after this, and does not come to.
    Closed(Attempt),
    /// Somebody who may hold it, under this token if it is known, may hold it no longer.
    MayEnd(Attempt, Option<u64>),
    /// It may have been taken away from the holder under this token.
    MayBreak(u64),
    /// Somebody looked, and saw this token; whose it is, if that is known.
    SeenHeld(Option<Attempt>, u64),
    /// Somebody looked, and saw nobody.
    SeenFree,
}

/// The lock, and where a look at it begins.
pub(super) struct Lock<B>(PhantomData<B>);

/// What is known before the first operation.
pub(super) trait Begins {
    const HOLDER: Holder;
}

/// Nobody holds, no token was given.
pub(super) struct FromTheBeginning;

/// Anybody may hold: the first operation that shows it says who.
pub(super) struct FromAnywhere;

impl Begins for FromTheBeginning {
    const HOLDER: Holder = Holder::Nobody;
}

impl Begins for FromAnywhere {
    const HOLDER: Holder = Holder::Anybody;
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    holder: Holder,
    /// The highest token that is known to have been given.
    token: u64,
    /// Attempts that cannot come to hold any more.
    closed: BTreeSet<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// Somebody or nobody: not known yet, or not any more.
    Anybody,
    Nobody,
    /// Known by its token, by its attempt or by both.
    One(Option<Attempt>, Option<u64>),
}

impl Holder {
    /// Whether it is this one; `None` if that cannot be told.
    fn is(self, attempt: Attempt, token: Option<u64>) -> Option<bool> {
        match (self, token) {
            (Self::Anybody, _) => None,
            (Self::Nobody, _) => Some(false),
            (Self::One(_, Some(held)), Some(token)) => Some(held == token),
            (Self::One(Some(holder), _), _) => Some(holder == attempt),
            (Self::One(None, _), _) => None,
        }
    }

    /// What is there once this one holds no longer.
    fn without(self, attempt: Attempt, token: Option<u64>) -> Self {
        match self.is(attempt, token) {
            Some(true) => Self::Nobody,
            Some(false) => self,
            None => Self::Anybody,
        }
    }

    fn can_be_free(self) -> bool {
        matches!(self, Self::Anybody | Self::Nobody)
    }
}

impl State {
    fn with(&self, holder: Holder) -> Self {
        let held = match holder {
            Holder::One(_, Some(token)) => token,
            _ => 0,
        };
        Self {
            holder,
            token: self.token.max(held),
            closed: self.closed.clone(),
        }
    }
}

impl<B: Begins> Specification for Lock<B> {
    type State = State;
    type Operation = Deed;

    fn init() -> State {
        State {
            holder: B::HOLDER,
            token: 0,
            closed: BTreeSet::new(),
        }
    }

    /// Whether the lock can have answered so, and what becomes of it.
    fn apply(deed: &Deed, state: &State) -> (bool, State) {
        let holder = state.holder;
        match *deed {
            Deed::Given(token) => {
                let mut state = state.clone();
                state.token = state.token.max(token);
                (true, state)
            }
            Deed::Acquired(attempt, token) => (
                holder.can_be_free() && token > state.token,
                state.with(Holder::One(Some(attempt), Some(token))),
            ),
            // Nothing, while it is not known who holds: that it got the lock is one of the things that can be so.
            Deed::MayAcquire(attempt, token) => {
                let can = holder == Holder::Nobody
                    && !state.closed.contains(&attempt)
                    && token.is_none_or(|token| token > state.token);
                let got = if can {
                    Holder::One(Some(attempt), token)
                } else {
                    holder
                };
                (true, state.with(got))
            }
            Deed::FoundHeld => (holder != Holder::Nobody, state.clone()),
            Deed::Released(attempt, token) => {
                // A holder of whom nothing is known has the highest token there is.
                let held = holder.is(attempt, Some(token)) != Some(false) && token >= state.token;
                (held, state.with(Holder::Nobody))
            }
            Deed::MayEnd(attempt, token) => (true, state.with(holder.without(attempt, token))),
            Deed::Closed(attempt) => {
                let mut state = state.with(holder.without(attempt, None));
                state.closed.insert(attempt);
                (true, state)
            }
            Deed::MayBreak(token) => {
                let left = match holder {
                    Holder::One(_, Some(held)) if held == token => Holder::Nobody,
                    Holder::One(_, None) => Holder::Anybody,
                    other => other,
                };
                (true, state.with(left))
            }
            Deed::SeenFree => (holder.can_be_free(), state.with(Holder::Nobody)),
            Deed::SeenHeld(by, token) => match holder {
                Holder::Nobody => (false, state.clone()),
                Holder::Anybody => (token >= state.token, state.with(Holder::One(by, Some(token)))),
                Holder::One(_, Some(held)) => (held == token, state.clone()),
                // Nobody has told it its token yet, so it is one that was not given before.
                Holder::One(holder, None) => {
                    (token > state.token, state.with(Holder::One(holder, Some(token))))
                }
            },
        }
    }
}
