//! The node's fault points: what a demonstration or a test may break on purpose.
//!
//! Three places look here: `raft.append` before a flush is reported (a slow disk), `raft.peer/<id>` on every
//! frame to or from a peer (a cut cable, one way or both), and `lock.after-commit` between the commit of a
//! batch and its answers (the classic lost reply). All of them are a relaxed load of `false` until a node was
//! started with faults enabled, so a production node pays nothing and cannot be talked into any of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which direction of a link is cut, seen from this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing reaches the peer.
    Outgoing,
    /// Nothing from the peer is heard.
    Incoming,
    /// Neither.
    Both,
}

/// What happens between the commit of a batch and the answers to its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCommit {
    /// The answers are late.
    Delay(Duration),
    /// The answers are lost: callers see an unknown outcome.
    DropReply,
    /// The process dies at once, as `kill -9` would have it.
    Exit,
}

#[derive(Default)]
struct Effects {
    append_delay: Option<Duration>,
    cuts: BTreeMap<u64, Cut>,
    after_commit: Option<AfterCommit>,
}

/// The switches; clones share them.
#[derive(Clone, Default)]
pub struct NodeFaults {
    any: Arc<AtomicBool>,
    enabled: bool,
    effects: Arc<Mutex<Effects>>,
}

impl NodeFaults {
    /// Switches that can be thrown, or, when not `enabled`, that never do anything.
    pub fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Whether this node allows faults at all.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// `raft.append`: every flush of the log takes this much longer.
    pub fn set_append_delay(&self, delay: Option<Duration>) {
        self.change(|effects| effects.append_delay = delay);
    }

    /// `raft.peer/<id>`: cuts the link to a peer, or mends it.
    pub fn set_cut(&self, peer: u64, cut: Option<Cut>) {
        self.change(|effects| match cut {
            Some(cut) => drop(effects.cuts.insert(peer, cut)),
            None => drop(effects.cuts.remove(&peer)),
        });
    }

    /// `lock.after-commit`.
    pub fn set_after_commit(&self, effect: Option<AfterCommit>) {
        self.change(|effects| effects.after_commit = effect);
    }

    pub(crate) fn append_delay(&self) -> Option<Duration> {
        self.look(|effects| effects.append_delay)
    }

    pub(crate) fn after_commit(&self) -> Option<AfterCommit> {
        self.look(|effects| effects.after_commit)
    }

    pub(crate) fn cuts_outgoing(&self, peer: u64) -> bool {
        matches!(self.look(|effects| effects.cuts.get(&peer).copied()), Some(Cut::Outgoing | Cut::Both))
    }

    pub(crate) fn cuts_incoming(&self, peer: u64) -> bool {
        matches!(self.look(|effects| effects.cuts.get(&peer).copied()), Some(Cut::Incoming | Cut::Both))
    }

    fn change(&self, f: impl FnOnce(&mut Effects)) {
        if !self.enabled {
            return;
        }
        let mut effects = self.lock();
        f(&mut effects);
        let any = effects.append_delay.is_some() || effects.after_commit.is_some() || !effects.cuts.is_empty();
        self.any.store(any, Ordering::Relaxed);
    }

    fn look<T>(&self, f: impl FnOnce(&Effects) -> Option<T>) -> Option<T> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        f(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Effects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
