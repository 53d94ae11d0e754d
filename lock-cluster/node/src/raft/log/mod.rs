//! The durable log and the durable vote, as the consensus library wants them.
//!
//! Three promises, on which all of Raft rests:
//!
//! 1. An append is readable when `append` returns, and reported as flushed only after its fsync, in order. The
//!    leader counts itself into the majority no earlier than that.
//! 2. A vote is on disk before `save_vote` returns, in the same queue as the appends: a node that forgot its vote
//!    could elect two leaders in one term.
//! 3. There are no holes.
//!
//! The device (a directory, or the simulation's disk) does the writing; this file translates, and keeps the
//! requests to one follower within a frame: a peer that is 5,000 entries behind gets them a mebibyte at a time.

#[cfg(test)]
mod damage;
pub mod device;
pub mod disk;
#[cfg(test)]
mod suite;

use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::{Arc, Mutex, PoisonError};

use futures::Stream;
use openraft::OptionalSend;
use openraft::async_runtime::{Oneshot, OneshotSender};
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};

use self::device::{DeviceState, LogDevice, LogPosition, VoteRecord};
use super::runtime::ServiceRt;
use super::types::{Cfg, CommittedLeaderId, LogEntry, Payload, Position, Vote};

/// Entries of one request to a follower, by size. Far below the frame limit, with room for the largest entry.
const READ_BYTES_MAX: usize = 1 << 20;
/// Entries handed to apply at a time, so that catching up does not read the whole log into memory.
const APPLY_ENTRIES_MAX: u64 = 64;

/// The log of one node. Clones share it.
pub struct LogStore<R> {
    /// `None` after [`LogStore::close`].
    device: Arc<Mutex<Option<Box<dyn LogDevice>>>>,
    runtime: PhantomData<fn() -> R>,
}

impl<R> Clone for LogStore<R> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            runtime: PhantomData,
        }
    }
}

impl<R: ServiceRt> LogStore<R> {
    /// A log on `device`.
    pub fn new(device: Box<dyn LogDevice>) -> Self {
        Self {
            device: Arc::new(Mutex::new(Some(device))),
            runtime: PhantomData,
        }
    }

    /// Lets go of the device, whoever still has a clone: its directory is free for the next start.
    pub fn close(&self) {
        drop(self.device.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// How often this log has called fdatasync; 0 once it is closed.
    pub(crate) fn syncs(&self) -> u64 {
        self.with(|device| Ok(device.syncs())).unwrap_or_default()
    }

    fn with<T>(&self, f: impl FnOnce(&mut dyn LogDevice) -> io::Result<T>) -> io::Result<T> {
        let mut device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        match device.as_mut() {
            Some(device) => f(device.as_mut()),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the log is closed")),
        }
    }

    /// Queues a write and waits until it is durable.
    async fn durably(&self, write: impl FnOnce(&mut dyn LogDevice) -> io::Result<()>) -> io::Result<()> {
        let (told, flushed) = R::Oneshot::channel();
        self.with(|device| {
            write(device)?;
            device.flush(Box::new(move |result| drop(told.send(result))))
        })?;
        flushed.await.unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the log was closed before the write was durable",
            ))
        })
    }

    fn entries(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
        let records = self.with(|device| device.read(range, bytes_max))?;
        records
            .into_iter()
            .map(|(at, payload)| {
                let payload: Payload = postcard::from_bytes(&payload).map_err(|error| {
                    io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("log entry {} is unreadable: {error}", at.index),
                    )
                })?;
                Ok(LogEntry {
                    log_id: to_position(at),
                    payload,
                })
            })
            .collect()
    }
}

impl<R: ServiceRt> RaftLogReader<Cfg<R>> for LogStore<R> {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> io::Result<Vec<LogEntry>>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.entries(half_open(&range), usize::MAX)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<LogEntry>> {
        self.entries(start..end, READ_BYTES_MAX)
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = io::Result<LogEntry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let Range { start, end } = half_open(&range);
        let log = self.clone();
        let chunks = futures::stream::try_unfold(start, move |next| {
            let chunk = log.entries(
                next..end.min(next.saturating_add(APPLY_ENTRIES_MAX)),
                READ_BYTES_MAX,
            );
            async move {
                let chunk = chunk?;
                let Some(last) = chunk.last() else { return Ok(None) };
                let next = last.log_id.index + 1;
                Ok::<_, io::Error>(Some((futures::stream::iter(chunk.into_iter().map(Ok)), next)))
            }
        });
        Box::pin(futures::TryStreamExt::try_flatten(chunks))
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.with(|device| Ok(device.state()))?.vote.map(to_vote))
    }
}

impl<R: ServiceRt> RaftLogStorage<Cfg<R>> for LogStore<R> {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<Cfg<R>>> {
        let DeviceState { last, purged, .. } = self.with(|device| Ok(device.state()))?;
        Ok(LogState {
            last_purged_log_id: purged.map(to_position),
            last_log_id: last.map(to_position),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let vote = VoteRecord {
            term: vote.leader_id.term,
            node: vote.leader_id.voted_for,
            committed: vote.committed,
        };
        self.durably(|device| device.save_vote(vote)).await
    }

    async fn save_committed(&mut self, committed: Option<Position>) -> io::Result<()> {
        let Some(committed) = committed.map(from_position) else {
            return Ok(());
        };
        self.with(|device| {
            // A follower may hear of a commit before it has the entry; and never goes back. Either would be a
            // false hint, so it waits for the next one.
            let state = device.state();
            if state.last >= Some(committed) && state.committed < Some(committed) {
                device.save_committed(committed)
            } else {
                Ok(())
            }
        })
    }

    async fn read_committed(&mut self) -> io::Result<Option<Position>> {
        Ok(self.with(|device| Ok(device.state()))?.committed.map(to_position))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Cfg<R>>) -> io::Result<()>
    where
        I: IntoIterator<Item = LogEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut records = Vec::new();
        for entry in entries {
            let payload = postcard::to_stdvec(&entry.payload).map_err(io::Error::other)?;
            records.push((from_position(entry.log_id), payload.into()));
        }
        self.with(|device| {
            device.append(records)?;
            device.flush(Box::new(move |result| callback.io_completed(result)))
        })
    }

    async fn truncate_after(&mut self, last: Option<Position>) -> io::Result<()> {
        let from = last.map_or(0, |last| last.index + 1);
        self.durably(|device| device.truncate(from)).await
    }

    async fn purge(&mut self, upto: Position) -> io::Result<()> {
        // Flushed, for the space of whole chunks is only given back then; not waited for, because nothing
        // depends on it: a purge that is lost is done again after the next snapshot.
        self.with(|device| {
            device.purge(from_position(upto))?;
            device.flush(Box::new(|_| {}))
        })
    }
}

fn half_open(range: &impl RangeBounds<u64>) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(index) => *index,
        Bound::Excluded(index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(index) => index.saturating_add(1),
        Bound::Excluded(index) => *index,
        Bound::Unbounded => u64::MAX,
    };
    start..end.max(start)
}

fn to_position(at: LogPosition) -> Position {
    Position {
        leader_id: CommittedLeaderId::new(at.term),
        index: at.index,
    }
}

fn from_position(position: Position) -> LogPosition {
    LogPosition {
        term: *position.leader_id,
        index: position.index,
    }
}

fn to_vote(vote: VoteRecord) -> Vote {
    if vote.committed {
        Vote::new_committed(vote.term, vote.node)
    } else {
        Vote::new(vote.term, vote.node)
    }
}
