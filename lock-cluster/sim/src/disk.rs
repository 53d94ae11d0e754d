//! A disk that tells the truth late: the model that stands where a real node has its log directory.
//!
//! Writes are visible to the node at once and durable later, in order, when a flush has taken its time. A crash keeps
//! a random part, from the front, of whatever was written and not yet flushed: the system may have written back as
//! much as it liked. What the model cannot show is a disk that lies about a flush, tears a record or flips a bit; the
//! checksums of the real log have tests of their own.
//!
//! Snapshots are files beside the log. Each is there entirely or not at all, and only ever replaced by a newer one,
//! which is what the real store promises.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use lock_node::raft::log::device::{DeviceState, Flushed, LogDevice, LogPosition, VoteRecord};
use lock_node::raft::snapshot::SnapshotStore;
use lock_node::raft::types::Snapshot;
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

use crate::plan::{self, Plant};
use crate::runtime::SimRt;
use crate::trace::Trace;

/// Time that a flush usually takes, and the seldom slow one.
const FLUSH_US: Range<u64> = 300..6_000;
const SLOW_FLUSH_US: Range<u64> = 50_000..300_000;
const SLOW_FLUSH_PER_MILLE: u32 = 10;
/// Flushes of a disk that was made slow.
const AILING_FLUSH_US: Range<u64> = 100_000..500_000;

/// The disk of one machine. It outlives the machine's crashes; clones are the same disk.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<Inner>>);

struct Inner {
    node: u64,
    rng: SmallRng,
    trace: Trace,
    plant: Option<Plant>,
    ailing: bool,
    /// What a restart finds.
    durable: Contents,
    snapshot: Option<Snapshot>,
    /// What has been written since, in order.
    dirty: VecDeque<Write>,
    /// Writes that crashes have taken.
    lost: u64,
}

/// What is on a log device.
#[derive(Clone, Default)]
struct Contents {
    vote: Option<VoteRecord>,
    entries: BTreeMap<u64, (LogPosition, Bytes)>,
    committed: Option<LogPosition>,
    purged: Option<LogPosition>,
}

#[derive(Clone)]
enum Write {
    Vote(VoteRecord),
    Append(LogPosition, Bytes),
    Truncate(u64),
    Purge(LogPosition),
    Committed(LogPosition),
}

impl Contents {
    fn write(&mut self, write: Write) {
        match write {
            Write::Vote(vote) => self.vote = Some(vote),
            Write::Append(at, payload) => drop(self.entries.insert(at.index, (at, payload))),
            Write::Truncate(index) => drop(self.entries.split_off(&index)),
            Write::Purge(upto) => {
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.purged = self.purged.max(Some(upto));
            }
            Write::Committed(at) => self.committed = Some(at),
        }
    }

    fn state(&self) -> DeviceState {
        let last = self.entries.last_key_value().map(|(_, (at, _))| *at);
        DeviceState {
            vote: self.vote,
            last: last.or(self.purged),
            committed: self.committed,
            purged: self.purged,
        }
    }
}

impl Disk {
    /// An empty one for a node.
    pub fn new(node: u64, seed: u64, trace: Trace, plant: Option<Plant>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            node,
            rng: SmallRng::seed_from_u64(seed),
            trace,
            plant,
            ailing: false,
            durable: Contents::default(),
            snapshot: None,
            dirty: VecDeque::new(),
            lost: 0,
        })))
    }

    /// The log as the node finds it at its start. The device's writer is a task of the calling scope.
    pub fn open_log(&self) -> Box<dyn LogDevice> {
        let flushes = Arc::new(Flushes::default());
        drop(SimRt::spawn(write_back(self.clone(), flushes.clone())));
        let cache = self.inner().durable.clone();
        Box::new(SimLog {
            disk: self.clone(),
            cache,
            written: 0,
            flushes,
        })
    }

    /// The node's snapshots.
    pub fn snapshots(&self) -> Arc<dyn SnapshotStore> {
        Arc::new(SimSnapshots(self.clone()))
    }

    /// The machine has lost its power: some of the last writes are there, the others never were.
    pub fn crash(&self) {
        let mut inner = self.inner();
        let written = inner.dirty.len();
        let kept = inner.rng.random_range(0..=written);
        for write in inner.dirty.drain(..).take(kept).collect::<Vec<_>>() {
            inner.durable.write(write);
        }
        inner.lost += (written - kept) as u64;
        let node = inner.node;
        inner
            .trace
            .note(&[node, 0xd15c, kept as u64, written as u64], || {
                format!("n{node} disk: {kept} of {written} unflushed writes survived the crash")
            });
    }

    /// Makes every flush slow, or no longer.
    pub fn set_ailing(&self, ailing: bool) {
        self.inner().ailing = ailing;
    }

    /// Writes that crashes have taken from this disk.
    pub fn lost(&self) -> u64 {
        self.inner().lost
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn flush_time(&mut self) -> Duration {
        let range = if self.ailing {
            AILING_FLUSH_US
        } else if self.rng.random_range(0..1_000) < SLOW_FLUSH_PER_MILLE {
            SLOW_FLUSH_US
        } else {
            FLUSH_US
        };
        Duration::from_micros(self.rng.random_range(range))
    }
}

/// The flushes that one life of a node waits for.
#[derive(Default)]
struct Flushes {
    /// How many dirty writes each covers, counted from the start of the life, and whom to tell.
    waiting: Mutex<VecDeque<(u64, Flushed)>>,
    asked: Notify,
    done: AtomicU64,
}

/// The disk's own pace: one flush at a time, for all that were asked for when it begins.
async fn write_back(disk: Disk, flushes: Arc<Flushes>) {
    let mut written = 0;
    loop {
        let batch: Vec<_> = {
            let mut waiting = flushes.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.drain(..).collect()
        };
        let Some(&(upto, _)) = batch.last() else {
            flushes.asked.notified().await;
            continue;
        };
        let time = disk.inner().flush_time();
        SimRt::sleep(time).await;
        {
            let mut inner = disk.inner();
            for _ in written..upto {
                let write = inner
                    .dirty
                    .pop_front()
                    .expect("what a flush covers was written before");
                inner.durable.write(write);
            }
            written = upto;
            let node = inner.node;
            inner
                .trace
                .note(&[node, 0xf1u64, upto], || format!("n{node} disk: flushed"));
        }
        flushes.done.fetch_add(1, Ordering::Relaxed);
        batch.into_iter().for_each(|(_, done)| done(Ok(())));
    }
}

/// One life's view of the disk: everything it has written, flushed or not.
struct SimLog {
    disk: Disk,
    cache: Contents,
    /// How much was written in this life.
    written: u64,
    flushes: Arc<Flushes>,
}

impl SimLog {
    fn put(&mut self, write: Write) -> io::Result<()> {
        self.cache.write(write.clone());
        self.disk.inner().dirty.push_back(write);
        self.written += 1;
        Ok(())
    }
}

impl LogDevice for SimLog {
    fn state(&self) -> DeviceState {
        self.cache.state()
    }

    fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<(LogPosition, Bytes)>> {
        let mut read = Vec::new();
        let mut bytes = 0_usize;
        for (_, entry) in self.cache.entries.range(range) {
            bytes = bytes.saturating_add(entry.1.len());
            if bytes > bytes_max && !read.is_empty() {
                break;
            }
            read.push(entry.clone());
        }
        Ok(read)
    }

    fn save_vote(&mut self, vote: VoteRecord) -> io::Result<()> {
        self.put(Write::Vote(vote))
    }

    fn append(&mut self, entries: Vec<(LogPosition, Bytes)>) -> io::Result<()> {
        for (at, payload) in entries {
            let last = self.cache.state().last;
            if last.is_some_and(|last| last.index + 1 != at.index) {
                return Err(io::Error::other(format!(
                    "a hole in the log: {at:?} behind {last:?}"
                )));
            }
            self.put(Write::Append(at, payload))?;
        }
        Ok(())
    }

    fn truncate(&mut self, index: u64) -> io::Result<()> {
        self.put(Write::Truncate(index))
    }

    fn purge(&mut self, upto: LogPosition) -> io::Result<()> {
        self.put(Write::Purge(upto))
    }

    fn save_committed(&mut self, committed: LogPosition) -> io::Result<()> {
        self.put(Write::Committed(committed))
    }

    fn syncs(&self) -> u64 {
        self.flushes.done.load(Ordering::Relaxed)
    }

    fn flush(&mut self, done: Flushed) -> io::Result<()> {
        let done = if self.disk.inner().plant == Some(Plant::AcknowledgeBeforeFlush) {
            done(Ok(()));
            Box::new(|_| {})
        } else {
            done
        };
        let mut waiting = self
            .flushes
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.push_back((self.written, done));
        self.flushes.asked.notify_one();
        Ok(())
    }
}

struct SimSnapshots(Disk);

impl SnapshotStore for SimSnapshots {
    fn save(&self, snapshot: Snapshot) -> BoxFuture<'static, io::Result<()>> {
        let disk = self.0.clone();
        Box::pin(async move {
            let time = disk.inner().flush_time();
            SimRt::sleep(time).await;
            let mut inner = disk.inner();
            let stored = inner.snapshot.as_ref().and_then(|stored| stored.meta.last_log_id);
            if stored < snapshot.meta.last_log_id {
                let node = inner.node;
                let index = snapshot.meta.last_log_id.map_or(0, |last| last.index);
                inner.trace.note(&[node, 0x5afe, index], || {
                    format!("n{node} disk: snapshot of index {index}")
                });
                inner.snapshot = Some(snapshot);
            }
            Ok(())
        })
    }

    fn load(&self) -> BoxFuture<'static, io::Result<Option<Snapshot>>> {
        let inner = self.0.inner();
        let mut snapshot = inner.snapshot.clone();
        if inner.plant == Some(Plant::ForgetAnswersInSnapshots)
            && let Some(snapshot) = &mut snapshot
        {
            snapshot.snapshot = plan::without_answers(&snapshot.snapshot);
        }
        Box::pin(async move { Ok(snapshot) })
    }
}
