//! The node's fault points: what a demonstration or a test may break on purpose.
//!
//! | point | where | effects |
//! |---|---|---|
//! | `raft.append` | before a flush of the log is reported | `delay`: a slow disk |
//! | `raft.peer/<id>` | every frame to and from a member | `error`: the cable is cut; `drop-reply`: cut one way, the member hears us and we do not hear it |
//! | `lock.after-commit` | between the commit of a batch and its answers | `delay`; `drop-reply` and `error`: the answers are lost, callers see an unknown outcome; `exit`: the process dies there |
//!
//! `exit` works at each of them. They are switched over HTTP like those of any service (`/v1/faults`), and a node
//! that was not started with faults enabled has them welded shut: one look at a `bool`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use service_kit::Faults;
use service_kit::faults::Effect;

use crate::config::Member;

const APPEND: &str = "raft.append";
const AFTER_COMMIT: &str = "lock.after-commit";

/// What happens between the commit of a batch and the answers to its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterCommit {
    /// The answers are late.
    Delay(Duration),
    /// The answers are lost.
    DropReply,
}

/// The switches; clones share them.
#[derive(Clone)]
pub struct NodeFaults {
    switches: Faults,
    /// The names of the links' points. They live as long as the process: there is one for each member.
    links: Arc<BTreeMap<u64, &'static str>>,
}

impl NodeFaults {
    /// The points of a node with these members; they can be switched only if `enabled`.
    pub fn new(enabled: bool, members: &[Member]) -> Self {
        if !enabled {
            return Self {
                switches: Faults::disabled(),
                links: Arc::default(),
            };
        }
        let name = |id: u64| -> &'static str { Box::leak(format!("raft.peer/{id}").into_boxed_str()) };
        let links: BTreeMap<u64, &'static str> = members
            .iter()
            .map(|member| (member.id, name(member.id)))
            .collect();
        let points: Vec<&'static str> = [APPEND, AFTER_COMMIT]
            .into_iter()
            .chain(links.values().copied())
            .collect();
        Self {
            switches: Faults::new(true, &points),
            links: Arc::new(links),
        }
    }

    /// The switches themselves, for the HTTP API and for tests.
    pub fn switches(&self) -> &Faults {
        &self.switches
    }

    /// How much longer a flush takes.
    pub(crate) fn append_delay(&self) -> Option<Duration> {
        match self.at(APPEND)? {
            Effect::Delay(delay) | Effect::Pause(delay) => Some(delay),
            _ => None,
        }
    }

    pub(crate) fn after_commit(&self) -> Option<AfterCommit> {
        match self.at(AFTER_COMMIT)? {
            Effect::Delay(delay) | Effect::Pause(delay) => Some(AfterCommit::Delay(delay)),
            _ => Some(AfterCommit::DropReply),
        }
    }

    /// Whether what this node sends reaches the member.
    pub(crate) fn reaches(&self, member: u64) -> bool {
        !matches!(self.link(member), Some(Effect::Error(_)))
    }

    /// Whether this node hears what the member sends.
    pub(crate) fn hears(&self, member: u64) -> bool {
        !matches!(self.link(member), Some(Effect::Error(_) | Effect::DropReply))
    }

    fn link(&self, member: u64) -> Option<Effect> {
        self.links.get(&member).and_then(|point| self.at(point))
    }

    fn at(&self, point: &'static str) -> Option<Effect> {
        let effect = self.switches.check(point)?;
        if effect == Effect::Exit {
            std::process::abort();
        }
        Some(effect)
    }
}
