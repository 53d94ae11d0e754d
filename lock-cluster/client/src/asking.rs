//! Asking the cluster one thing until it is answered: which node next, how long, what an answer means.
//!
//! Every request is safe to repeat: the client chooses all ids, and the cluster answers the same again. So the
//! rule is simple. An answer that *says* what happened ends the call. Anything else (a timeout, a reset, a 5xx,
//! a node that does not lead, a cluster without a leader) leaves it unknown, and the same request goes to another
//! node, until the caller's deadline.

use std::ops::ControlFlow;
use std::time::Duration;

use lock_pipe::Problem;
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::error::LockError;
use crate::leaders::{Leaders, NodeUrl};

/// Consecutive 421s followed without a pause; more of them means that nodes disagree about who leads.
const HOPS_WITHOUT_PAUSE: u32 = 2;

/// An answer that says what happened: it was done, or there is a reason why not.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) said: Result<T, Problem>,
    /// An earlier try of the same call went without an answer: it may have been carried out, and may still be.
    pub(crate) in_doubt: bool,
}

/// What one try brought.
#[derive(Debug)]
pub(crate) enum Sent<T> {
    Answer(Result<T, Problem>),
    /// This node does not lead; perhaps it knows who does.
    Elsewhere(Option<NodeUrl>),
    /// Somebody else was proven leader before this node answered.
    Moved(NodeUrl),
    Unknown(String),
}

/// One request on its way from node to node.
pub(crate) struct Asking<'t> {
    leaders: &'t Leaders,
    /// Whom to ask next.
    pub(crate) node: NodeUrl,
    deadline: Instant,
    backoff: Backoff,
    hops: u32,
    in_doubt: bool,
    last: String,
}

impl<'t> Asking<'t> {
    pub(crate) fn new(leaders: &'t Leaders, deadline: Instant) -> Self {
        Self {
            leaders,
            node: leaders.first(),
            deadline,
            backoff: Backoff::new(),
            hops: 0,
            in_doubt: false,
            last: String::new(),
        }
    }

    /// What of `timeout` the next try may take; the last node's words when there is no time left.
    pub(crate) fn time_for(&self, timeout: Duration) -> Result<Duration, LockError> {
        match self.remaining() {
            Duration::ZERO => Err(LockError::unavailable(match self.last.as_str() {
                "" => "not asked yet",
                last => last,
            })),
            remaining => Ok(timeout.min(remaining)),
        }
    }

    /// Takes in what a try brought: an answer, or somebody else to ask, perhaps after a pause.
    pub(crate) async fn hear<T>(&mut self, sent: Sent<T>) -> ControlFlow<Answer<T>> {
        match sent {
            Sent::Answer(said) => {
                self.leaders.learn_from(&self.node, &said);
                let in_doubt = self.in_doubt;
                return ControlFlow::Break(Answer { said, in_doubt });
            }
            Sent::Moved(leader) => {
                self.in_doubt = true;
                self.node = leader;
                return ControlFlow::Continue(());
            }
            Sent::Elsewhere(Some(leader)) => {
                self.last = format!("{} does not lead", self.node);
                self.node = leader;
                self.hops += 1;
                if self.hops <= HOPS_WITHOUT_PAUSE {
                    return ControlFlow::Continue(());
                }
            }
            Sent::Elsewhere(None) => {
                self.last = format!("{} knows no leader", self.node);
                self.node = self.leaders.after(&self.node);
            }
            Sent::Unknown(why) => {
                self.in_doubt = true;
                self.last = why;
                self.node = self.leaders.after(&self.node);
            }
        }
        sleep(self.backoff.pause().min(self.remaining())).await;
        ControlFlow::Continue(())
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl<T> Sent<T> {
    /// Sorts what `node` said.
    pub(crate) fn from_said(node: &str, said: Result<T, Problem>) -> Self {
        let Err(problem) = said else {
            return Self::Answer(said);
        };
        match (problem.status, problem.slug.as_str()) {
            (421, _) => Self::Elsewhere(problem.leader.map(|leader| leader.client_url.into())),
            (503, "lock-wait-timeout") => Self::Answer(Err(problem)),
            (503, "no-leader") => Self::Elsewhere(None),
            (500.., _) => Self::Unknown(format!("{node} answered {}: {}", problem.status, problem.detail)),
            _ => Self::Answer(Err(problem)),
        }
    }
}
