//! All replicas are the same: whoever applies an entry must come to the same state, and tell the same events.
//!
//! The first replica to apply an index sets what it means; every later one is compared with it, also the same node
//! after a restart, and a state taken from a snapshot. An entry that was applied and then lost (applied before it was
//! safe) shows up as two entries that differ.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::LockState;
use lock_node::service::{FeedEvent, Observer};

use crate::network::name;
use crate::trace::{Trace, hash_bytes};

/// What all replicas have agreed on so far; clones share it.
#[derive(Clone)]
pub struct Agreement(Arc<Mutex<Inner>>);

struct Inner {
    trace: Trace,
    entries: BTreeMap<u64, Meaning>,
    violations: Vec<String>,
    applied: u64,
    restored: u64,
}

struct Meaning {
    first: u64,
    state: u64,
    events: Vec<FeedEvent>,
}

impl Agreement {
    /// Nothing was applied yet.
    pub fn new(trace: Trace) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            trace,
            entries: BTreeMap::new(),
            violations: Vec::new(),
            applied: 0,
            restored: 0,
        })))
    }

    /// The events of the cluster, in log order.
    pub fn events(&self) -> Vec<(u64, Vec<FeedEvent>)> {
        let inner = self.inner();
        let events = inner
            .entries
            .iter()
            .map(|(index, entry)| (*index, entry.events.clone()));
        events.collect()
    }

    /// What was not the same.
    pub fn violations(&self) -> Vec<String> {
        self.inner().violations.clone()
    }

    /// Entries applied and snapshots installed, over all nodes.
    pub fn counts(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.applied, inner.restored)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches one replica for the [`Agreement`].
pub(super) struct Witness {
    agreement: Agreement,
    node: u64,
}

impl Witness {
    pub(super) fn new(agreement: Agreement, node: u64) -> Self {
        Self { agreement, node }
    }
}

impl Observer for Witness {
    fn applied(&self, index: u64, events: &[FeedEvent], state: &LockState) {
        state.check_invariants();
        let hash = hash_state(state);
        let mut inner = self.agreement.inner();
        inner.applied += 1;
        let node = self.node;
        let Some(known) = inner.entries.get(&index) else {
            inner.trace.note(&[node, index, hash], || {
                let events: Vec<String> = events.iter().map(told).collect();
                format!("{} applied {index} first: {}", name(node), events.join("; "))
            });
            let meaning = Meaning {
                first: node,
                state: hash,
                events: events.to_vec(),
            };
            inner.entries.insert(index, meaning);
            return;
        };
        if known.state != hash || known.events != events {
            let violation = format!(
                "entry {index} means one thing on {} and another on {}: {:?} / {events:?}",
                name(known.first),
                name(node),
                known.events
            );
            inner.violations.push(violation);
        }
    }

    fn restored(&self, index: Option<u64>, state: &LockState) {
        state.check_invariants();
        let (hash, node) = (hash_state(state), self.node);
        let mut inner = self.agreement.inner();
        inner.restored += 1;
        inner
            .trace
            .note(&[node, index.unwrap_or_default(), hash, 0x5a], || {
                format!("{} took its state from a snapshot of {index:?}", name(node))
            });
        // The entry itself may be a membership or a blank one, which nobody reports: the state is then that of the
        // one before.
        let known = index.and_then(|index| inner.entries.range(..=index).next_back());
        if let Some((known_index, known)) = known
            && known.state != hash
        {
            let violation = format!(
                "the snapshot of {index:?} that {} was given is not the state after {known_index}",
                name(node)
            );
            inner.violations.push(violation);
        }
    }
}

fn hash_state(state: &LockState) -> u64 {
    let bytes = postcard::to_stdvec(&state.snapshot()).expect("plain values always encode into memory");
    hash_bytes(&bytes)
}

fn told(event: &FeedEvent) -> String {
    match event {
        FeedEvent::Lock(event) => format!("{event:?}"),
        FeedEvent::LeaderChanged { term, leader } => format!("{} leads term {term}", name(*leader)),
    }
}
