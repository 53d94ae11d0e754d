//! What is remembered of one attempt.
//!
//! An acquisition is *live* while it stands in the lines of its names, waiting or holding; then it is
//! *finished*, and nothing is left of it but its answer, kept so that a client whose reply was lost can
//! ask again. That memory is the difference between "granted at most once" and "granted again after a
//! time-out": in Raft a proposal that timed out is neither done nor undone, and the only way to find out
//! is to ask again under the same id.

use serde::{Deserialize, Serialize};

use crate::event::{ReleaseReason, WaitEnd};
use crate::id::{Delivery, FencingToken};
use crate::name::LockNames;
use crate::reply::AcquireAnswer;
use crate::time::ClusterTime;

use super::line::Arrival;

/// What is remembered of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Acquisition {
    /// It stands in the lines of all its names.
    Live(Live),
    /// It does not, any more.
    Finished {
        /// To tell a retry from another attempt under the same id.
        names: LockNames,
        outcome: Outcome,
    },
    /// A release or an abandon came first, and the acquire itself may be anywhere between the client and
    /// us. Its id is used up: should it still arrive, it must not be granted to a client that has moved on.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Live {
    pub(super) names: LockNames,
    pub(super) arrival: Arrival,
    pub(super) deliveries: Deliveries,
    pub(super) phase: Phase,
}

/// By which deliveries an attempt has come, less those that were abandoned.
///
/// Not just the latest: a delivery can be overtaken by its own retry, and then be hung up on while the client
/// holds what the retry was granted. As long as one is left, somebody may have been told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Deliveries {
    Known(Vec<Delivery>),
    /// More than are worth remembering. The attempt is never abandoned then; its client, or its session's end,
    /// will do.
    Many,
}

impl Deliveries {
    const KNOWN_MAX: usize = 8;

    pub(super) fn one(delivery: Delivery) -> Self {
        Self::Known(vec![delivery])
    }

    pub(super) fn add(&mut self, delivery: Delivery) {
        match self {
            Self::Known(known) if known.contains(&delivery) => {}
            Self::Known(known) if known.len() < Self::KNOWN_MAX => known.push(delivery),
            Self::Known(_) => *self = Self::Many,
            Self::Many => {}
        }
    }

    /// Whether it was the last one.
    pub(super) fn abandon(&mut self, delivery: Delivery) -> bool {
        match self {
            Self::Known(known) => {
                known.retain(|other| *other != delivery);
                known.is_empty()
            }
            Self::Many => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Not the first in all its lines. Its wait is over when time has gone *past* `until`.
    Waiting { until: ClusterTime },
    /// The first in all its lines.
    Granted {
        fencing_token: FencingToken,
        at: ClusterTime,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Held,
    TimedOut,
    Abandoned,
    Released,
    Broken,
}

/// Why somebody leaves the lines.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaving {
    Released,
    Abandoned,
    Broken,
    TimedOut,
    SessionClosed,
    SessionExpired,
}

impl Leaving {
    /// The word for it if it held.
    pub(super) fn of_holder(self) -> ReleaseReason {
        match self {
            Self::Released => ReleaseReason::Released,
            Self::Abandoned => ReleaseReason::Abandoned,
            Self::Broken => ReleaseReason::Broken,
            Self::TimedOut => unreachable!("a holder does not wait"),
            Self::SessionClosed => ReleaseReason::SessionClosed,
            Self::SessionExpired => ReleaseReason::SessionExpired,
        }
    }

    /// The word for it if it waited.
    pub(super) fn of_waiter(self) -> WaitEnd {
        match self {
            Self::Released => WaitEnd::Released,
            Self::Abandoned => WaitEnd::Abandoned,
            Self::Broken => unreachable!("a waiter has no token to be broken by"),
            Self::TimedOut => WaitEnd::TimedOut,
            Self::SessionClosed => WaitEnd::SessionClosed,
            Self::SessionExpired => WaitEnd::SessionExpired,
        }
    }
}

impl Acquisition {
    /// How it stands, for whoever asks.
    pub(super) fn answer(&self) -> AcquireAnswer {
        match self {
            Self::Live(live) => match live.phase {
                Phase::Waiting { .. } => AcquireAnswer::Queued,
                Phase::Granted { fencing_token, .. } => AcquireAnswer::Granted {
                    fencing_token,
                    names: live.names.clone(),
                },
            },
            Self::Finished { outcome, .. } => match outcome {
                Outcome::Held => AcquireAnswer::Held,
                Outcome::TimedOut => AcquireAnswer::TimedOut,
                Outcome::Abandoned => AcquireAnswer::Abandoned,
                Outcome::Released => AcquireAnswer::Released,
                Outcome::Broken => AcquireAnswer::Broken,
            },
            Self::Closed => AcquireAnswer::Released,
        }
    }

    /// Whether an acknowledgement may make us forget it. Not a live one, of course; and not a broken one,
    /// for its client may well believe that it still holds: it is reminded until it releases.
    pub(super) fn is_forgettable(&self) -> bool {
        !matches!(self, Self::Live(_)) && !self.is_broken()
    }

    pub(super) fn is_broken(&self) -> bool {
        matches!(
            self,
            Self::Finished {
                outcome: Outcome::Broken,
                ..
            }
        )
    }

    pub(super) fn finished(self, outcome: Outcome) -> Self {
        match self {
            Self::Live(Live { names, .. }) | Self::Finished { names, .. } => {
                Self::Finished { names, outcome }
            }
            Self::Closed => Self::Closed,
        }
    }

    /// Whether an acquire for these names can be a retry of this one.
    pub(super) fn is_for(&self, names: &LockNames) -> bool {
        match self {
            Self::Live(Live { names: mine, .. }) | Self::Finished { names: mine, .. } => mine.same_set(names),
            Self::Closed => true,
        }
    }
}
