//! One node's copy of the replicated state, and what hangs on it: waiters and the feed.
//!
//! Everything sits behind one mutex that is held for the length of one entry and never across an `.await`. Inside
//! it an entry is applied, its events are put in the ring and its waiters are looked up; outside of it they are
//! woken. The hand-over of a contended lock is therefore decided, recorded and delivered by the one thread that
//! applies the release.
//!
//! A panic in here means that the state broke its own rules. The mutex stays poisoned, and every later use of the
//! replica panics too: such a node must not answer anything any more.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use lock_core::{
    AcquireAnswer, AcquireId, ClusterTime, Command, Delivery, LockState, Reply, SessionId, Snapshot,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

use super::events::Ring;
use super::waiters::{Waiters, Wakeups};
use super::{Acquired, Compacted, EventFeed, FeedEvent, FeedItem};
use crate::raft::BatchContent;

/// The replica of one node.
pub struct Replica {
    inner: Mutex<Inner>,
    /// Something was applied.
    changed: Notify,
    observer: Option<Box<dyn Observer>>,
}

/// Looks over a replica's shoulder, entry by entry: how a simulation sees that all replicas are the same. It is called
/// with the replica locked, and must not call back.
pub trait Observer: Send + Sync + 'static {
    /// The commands of the entry at `index` were applied and have brought these events about.
    fn applied(&self, index: u64, events: &[FeedEvent], state: &LockState);
    /// The state was replaced by a snapshot's, which stands for everything up to `index`.
    fn restored(&self, index: Option<u64>, state: &LockState);
}

struct Inner {
    state: LockState,
    /// The last index applied.
    applied: Option<u64>,
    /// The highest term whose leader was announced in the feed.
    announced: u64,
    ring: Ring,
    waiters: Waiters,
}

impl Inner {
    /// The index of the entry that is applied next.
    fn next(&self) -> u64 {
        self.applied.map_or(0, |applied| applied + 1)
    }

    fn compacted(&self) -> Compacted {
        Compacted {
            resume_from: self.next(),
        }
    }
}

/// A copy of the state, to be encoded at leisure.
#[derive(Serialize, Deserialize)]
pub struct Frozen {
    /// Kept, or a node that starts from a snapshot would announce the same leader once more than others do.
    announced: u64,
    state: Snapshot,
}

impl Frozen {
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("plain values always encode into memory")
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        postcard::from_bytes(bytes).map_err(|error| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the state in the snapshot is unreadable: {error}"),
            )
        })
    }
}

impl Default for Replica {
    fn default() -> Self {
        Self::new()
    }
}

impl Replica {
    /// An empty one.
    pub fn new() -> Self {
        let inner = Inner {
            state: LockState::new(),
            applied: None,
            announced: 0,
            ring: Ring::new(),
            waiters: Waiters::default(),
        };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            observer: None,
        }
    }

    /// An empty one that is watched.
    pub fn observed(observer: Box<dyn Observer>) -> Self {
        Self {
            observer: Some(observer),
            ..Self::new()
        }
    }

    /// Applies one entry's commands in order, and wakes whoever waited for what they brought about.
    pub(crate) fn apply(&self, term: u64, index: u64, content: BatchContent) -> Vec<Reply> {
        let BatchContent { at, by, commands } = content;
        let mut replies = Vec::with_capacity(commands.len());
        let mut wakeups = Wakeups::new();
        let mut events = Vec::new();
        {
            let mut inner = self.lock();
            if inner.announced < term {
                inner.announced = term;
                events.push(FeedEvent::LeaderChanged { term, leader: by });
            }
            for command in commands {
                let attempt = match &command {
                    Command::Acquire {
                        session_id,
                        acquire_id,
                        ..
                    } => Some((*session_id, *acquire_id)),
                    _ => None,
                };
                let applied = inner.state.apply(at, command);
                if let (Some(attempt), Reply::Acquire(AcquireAnswer::Queued)) = (attempt, &applied.reply) {
                    inner.waiters.mark_queued(attempt);
                }
                for event in &applied.events {
                    inner.waiters.hear(event, &mut wakeups);
                }
                events.extend(applied.events.into_iter().map(FeedEvent::Lock));
                replies.push(applied.reply);
            }
            inner.applied = Some(index);
            if let Some(observer) = &self.observer {
                observer.applied(index, &events, &inner.state);
            }
            if !events.is_empty() {
                inner.ring.push(FeedItem { index, events });
            }
        }
        self.wake(wakeups);
        replies
    }

    /// Notes an entry that holds no commands.
    pub(crate) fn pass(&self, index: u64) -> Vec<Reply> {
        self.lock().applied = Some(index);
        Vec::new()
    }

    /// Copies the state for a snapshot.
    pub(crate) fn freeze(&self) -> Frozen {
        let inner = self.lock();
        Frozen {
            announced: inner.announced,
            state: inner.state.snapshot(),
        }
    }

    /// Replaces the state by the one in a snapshot, and looks up every waiter in it.
    pub(crate) fn restore(&self, frozen: Frozen, index: Option<u64>) -> io::Result<()> {
        let state = LockState::restore(frozen.state)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let mut wakeups = Wakeups::new();
        {
            let mut inner = self.lock();
            let Inner { waiters, .. } = &mut *inner;
            waiters.recheck(&state, &mut wakeups);
            inner.state = state;
            inner.applied = index;
            inner.announced = frozen.announced;
            inner.ring.reset(index);
            if let Some(observer) = &self.observer {
                observer.restored(index, &inner.state);
            }
        }
        self.wake(wakeups);
        Ok(())
    }

    /// Looks at the state. What is seen may be behind the cluster: see `LockService::read`.
    pub fn look<T>(&self, look: impl FnOnce(&LockState) -> T) -> T {
        look(&self.lock().state)
    }

    /// Looks at the state together with the index from which the feed goes on behind it.
    pub(super) fn look_with_position<T>(&self, look: impl FnOnce(&LockState) -> T) -> (u64, T) {
        let inner = self.lock();
        (inner.applied.map_or(0, |applied| applied + 1), look(&inner.state))
    }

    /// Cluster time as of the last applied command.
    pub(crate) fn now(&self) -> ClusterTime {
        self.look(LockState::now)
    }

    /// How many requests of this node wait for a grant.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiters.len()
    }

    pub(super) fn register(
        &self,
        session_id: SessionId,
        acquire_id: AcquireId,
        delivery: Delivery,
    ) -> oneshot::Receiver<Acquired> {
        self.lock().waiters.register((session_id, acquire_id), delivery)
    }

    pub(super) fn forget(&self, session_id: SessionId, acquire_id: AcquireId, delivery: Delivery) {
        self.lock().waiters.forget((session_id, acquire_id), delivery);
    }

    pub(super) fn forget_all(&self) {
        self.lock().waiters.clear();
    }

    /// A feed from index `from` on.
    pub(super) fn feed(self: &Arc<Self>, from: u64) -> Result<EventFeed, Compacted> {
        let inner = self.lock();
        inner.ring.first_from(from).map_err(|()| inner.compacted())?;
        Ok(EventFeed::new(self.clone(), from))
    }

    /// A feed of what is applied next.
    pub(super) fn feed_from_now(self: &Arc<Self>) -> EventFeed {
        EventFeed::new(self.clone(), self.lock().next())
    }

    pub(super) async fn item_from(&self, from: u64) -> Result<FeedItem, Compacted> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Listening must begin before looking, or what is applied in between would be slept through.
            changed.as_mut().enable();
            {
                let inner = self.lock();
                match inner.ring.first_from(from) {
                    Ok(Some(item)) => return Ok(item.clone()),
                    Ok(None) => {}
                    Err(()) => return Err(inner.compacted()),
                }
            }
            changed.await;
        }
    }

    fn wake(&self, wakeups: Wakeups) {
        for (waiter, acquired) in wakeups {
            // A waiter that has just gone away gives the grant back by itself.
            let _ = waiter.send(acquired);
        }
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("applying panicked before: this node's state cannot be trusted")
    }
}
