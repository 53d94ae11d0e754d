//! Asking the cluster one thing until it is answered: which node next, how long, what an answer means.
//!
//! Every request is safe to repeat: the client chooses all ids, and the cluster answers the same again. So the
//! rule is simple. An answer that *says* what happened ends the call. Anything else (a timeout, a reset, a 5xx,
//! a node that does not lead, a cluster without a leader) leaves it unknown, and the same request goes to another
//! node, until the caller's deadline.
//!
//! Nodes are asked in rounds: each of them once, one right after the other, whoever is named as the leader first; and
//! then there is a pause. So a node that is gone costs the time that its "connection refused" takes, and of two that
//! name each other neither is asked twice. A pause ends early when another call of this client finds the leader.

use std::ops::ControlFlow;
use std::time::Duration;

use lock_pipe::Problem;
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::error::LockError;
use crate::leaders::{Leaders, NodeUrl};

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
    /// Who has been asked in this round.
    asked: Vec<NodeUrl>,
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
            asked: Vec::new(),
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
        let named = match sent {
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
                Some(leader)
            }
            Sent::Elsewhere(None) => {
                self.last = format!("{} knows no leader", self.node);
                None
            }
            Sent::Unknown(why) => {
                self.in_doubt = true;
                self.last = why;
                None
            }
        };
        self.move_on(named).await;
        ControlFlow::Continue(())
    }

    /// To the node that was `named`, or to the next one, unless it was asked in this round.
    async fn move_on(&mut self, named: Option<NodeUrl>) {
        self.asked.push(self.node.clone());
        let new = |node: &NodeUrl| !self.asked.contains(node);
        let next = named
            .filter(new)
            .or_else(|| self.leaders.all_after(&self.node).find(new));
        if let Some(next) = next {
            self.node = next;
            return;
        }
        self.asked.clear();
        let pause = self.backoff.pause().min(self.remaining());
        self.node = tokio::select! {
            leader = self.leaders.other_than(&self.node) => leader,
            () = sleep(pause) => self.leaders.first(),
        };
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn leaders() -> Leaders {
        let url = |name: &str| format!("http://{name}:8501");
        Leaders::new(&["a", "b", "c"].map(url)).unwrap()
    }

    fn unknown() -> Sent<()> {
        Sent::Unknown("refused".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn each_node_is_asked_once_before_there_is_a_pause() {
        let leaders = leaders();
        let began = Instant::now();
        let mut asking = Asking::new(&leaders, began + Duration::from_secs(60));
        let mut asked = BTreeSet::new();
        for _ in 0..3 {
            assert_eq!(Instant::now(), began, "no pause within a round");
            assert!(asked.insert(asking.node.clone()), "{} again", asking.node);
            assert!(asking.hear(unknown()).await.is_continue());
        }
        assert!(Instant::now() > began, "and one behind it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_did_not_answer_is_not_asked_again_because_a_follower_names_it() {
        let leaders = leaders();
        let mut asking = Asking::new(&leaders, Instant::now() + Duration::from_secs(60));
        let gone = asking.node.clone();
        assert!(asking.hear(unknown()).await.is_continue());
        let follower = asking.node.clone();
        let named = Sent::<()>::Elsewhere(Some(gone.clone()));
        assert!(asking.hear(named).await.is_continue());
        assert!(asking.node != gone && asking.node != follower);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_ends_when_somebody_else_finds_the_leader() {
        let leaders = leaders();
        let mut asking = Asking::new(&leaders, Instant::now() + Duration::from_secs(60));
        for _ in 0..2 {
            assert!(asking.hear(unknown()).await.is_continue());
        }
        let began = Instant::now();
        let here = asking.node.clone();
        let found = leaders.all_after(&here).next().unwrap();
        let (heard, ()) = tokio::join!(asking.hear(unknown()), async {
            leaders.learn_from(&found, &Ok::<(), _>(()));
        });
        assert!(heard.is_continue());
        assert_eq!((asking.node, Instant::now()), (found, began));
    }
}
