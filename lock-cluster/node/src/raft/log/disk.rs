//! The device of real nodes: the `raft-log` crate, a chunked write-ahead log with one writer thread.
//!
//! What we set, and why:
//!
//! * `flush_batch_wait` is zero. The default waits a millisecond for company before each fsync; our batcher has
//!   already gathered the company, so the wait would only double the latency of every lock.
//! * Chunks are small (4 MiB), and so is the cache of entries. The crate frees the space of purged entries by whole
//!   chunks, and keeps the entries of the open chunk in memory whatever the cache may hold: with the default of 1 GiB a
//!   node that snapshots diligently would still keep a gigabyte of dead entries. A follower that is further behind
//!   than the cache reaches is sent what it lacks from the disk.
//! * The replay buffer is small, or opening a log of three entries would allocate 64 MiB.
//! * A half-written record at the very end is cut off on opening: it is what a crash leaves, and nobody was told
//!   that it was safe. Damage anywhere else fails the opening, and the node does not start.
//!
//! The crate knows a half-written record by the file ending inside of it, and would take a record whose *length* was
//! damaged for one: it would cut off everything behind, acknowledged or not. So an entry carries its length twice, the
//! second time inverted, and one whose lengths contradict each other is damaged, wherever the file ends.
//!
//! The directory carries a lock file: a second process on the same data is refused.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raft_log::api::raft_log_writer::RaftLogWriter;
use raft_log::codeq::{Decode, Encode};
use raft_log::{Callback, Config, RaftLog, Types};

use super::device::{DeviceState, Flushed, LogDevice, LogPosition, VoteRecord};
use crate::faults::NodeFaults;

const CHUNK_BYTES_MAX: usize = 4 << 20;
const CHUNK_RECORDS_MAX: usize = 64 << 10;
const CACHE_BYTES_MAX: usize = 4 << 20;
const REPLAY_BUFFER_BYTES: usize = 1 << 20;
/// The largest entry; no larger one could be sent to a peer.
const ENTRY_BYTES_MAX: u32 = 4 << 20;

/// A log in a directory.
pub struct DiskLog {
    log: RaftLog<DiskTypes>,
    faults: NodeFaults,
}

impl DiskLog {
    /// Opens the log in `dir`, making it if there is none.
    pub fn open(dir: &Path, faults: NodeFaults) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let shown = dir.display();
        let dir = dir.to_str().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "the data directory's name is not UTF-8",
            )
        })?;
        let mut config = Config::new(dir);
        config.wal.flush_batch_wait = Some(Duration::ZERO);
        config.wal.chunk_max_size = Some(CHUNK_BYTES_MAX);
        config.wal.chunk_max_records = Some(CHUNK_RECORDS_MAX);
        config.wal.read_buffer_size = Some(REPLAY_BUFFER_BYTES);
        config.wal.truncate_incomplete_record = Some(true);
        config.log_cache_capacity = Some(CACHE_BYTES_MAX);
        let log = RaftLog::open(Arc::new(config))
            .map_err(|error| io::Error::new(error.kind(), format!("the log in {shown}: {error}")))?;
        Ok(Self { log, faults })
    }
}

impl LogDevice for DiskLog {
    fn state(&self) -> DeviceState {
        let state = self.log.log_state();
        DeviceState {
            vote: state.vote().map(|vote| vote.0),
            last: state.last().map(|at| at.0),
            committed: state.committed().map(|at| at.0),
            purged: state.purged().map(|at| at.0),
        }
    }

    fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<(LogPosition, Bytes)>> {
        let mut entries: Vec<(LogPosition, Bytes)> = Vec::new();
        let mut bytes = 0;
        for record in self.log.read(range.start, range.end) {
            let (at, payload) = record?;
            bytes += payload.0.len();
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push((at.0, payload.0));
        }
        Ok(entries)
    }

    fn save_vote(&mut self, vote: VoteRecord) -> io::Result<()> {
        self.log.save_vote(Record(vote)).map(drop)
    }

    fn append(&mut self, entries: Vec<(LogPosition, Bytes)>) -> io::Result<()> {
        self.log
            .append(
                entries
                    .into_iter()
                    .map(|(at, payload)| (Record(at), Record(payload))),
            )
            .map(drop)
    }

    fn truncate(&mut self, index: u64) -> io::Result<()> {
        // Nothing there to remove; the crate would look for the entry before it and call it missing.
        if self
            .log
            .log_state()
            .last()
            .is_none_or(|last| last.0.index < index)
        {
            return Ok(());
        }
        self.log.truncate(index).map(drop)
    }

    fn purge(&mut self, upto: LogPosition) -> io::Result<()> {
        self.log.purge(Record(upto)).map(drop)
    }

    fn save_committed(&mut self, committed: LogPosition) -> io::Result<()> {
        // Not flushed: it rides along with the next append. Losing it costs a restarted node nothing but the
        // wait for a leader to say it again, and a flush of its own would double the number of fsyncs.
        self.log.commit(Record(committed)).map(drop)
    }

    fn syncs(&self) -> u64 {
        self.log.stat().flush_metrics.sync_batch_count
    }

    fn flush(&mut self, done: Flushed) -> io::Result<()> {
        self.log.flush(
            true,
            Some(OnFlush {
                done,
                delay: self.faults.append_delay(),
            }),
        )
    }
}

/// The crate's view of our types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DiskTypes;

impl Types for DiskTypes {
    type LogId = Record<LogPosition>;
    type LogPayload = Record<Bytes>;
    type Vote = Record<VoteRecord>;
    type Callback = OnFlush;
    type UserData = u8;

    fn log_index(log_id: &Self::LogId) -> u64 {
        log_id.0.index
    }

    fn payload_size(payload: &Self::LogPayload) -> u64 {
        payload.0.len() as u64
    }
}

/// Runs on the writer thread, after the fsync.
struct OnFlush {
    done: Flushed,
    /// The fault point `raft.append`: sleeping here holds up this flush and all behind it, as a slow disk does.
    delay: Option<Duration>,
}

impl Callback for OnFlush {
    fn send(self, result: io::Result<()>) {
        if let Some(delay) = self.delay {
            std::thread::sleep(delay);
        }
        (self.done)(result);
    }
}

/// A value as the file holds it: fixed-width big-endian numbers, bytes behind their length and its complement. The crate
/// adds a checksum to each record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record<T>(T);

impl Encode for Record<LogPosition> {
    fn encode<W: io::Write>(&self, mut w: W) -> io::Result<usize> {
        Ok(self.0.term.encode(&mut w)? + self.0.index.encode(&mut w)?)
    }
}

impl Decode for Record<LogPosition> {
    fn decode<R: io::Read>(mut r: R) -> io::Result<Self> {
        Ok(Self(LogPosition {
            term: u64::decode(&mut r)?,
            index: u64::decode(&mut r)?,
        }))
    }
}

impl Encode for Record<VoteRecord> {
    fn encode<W: io::Write>(&self, mut w: W) -> io::Result<usize> {
        Ok(self.0.term.encode(&mut w)? + self.0.node.encode(&mut w)? + self.0.committed.encode(&mut w)?)
    }
}

impl Decode for Record<VoteRecord> {
    fn decode<R: io::Read>(mut r: R) -> io::Result<Self> {
        Ok(Self(VoteRecord {
            term: u64::decode(&mut r)?,
            node: u64::decode(&mut r)?,
            committed: bool::decode(&mut r)?,
        }))
    }
}

impl Encode for Record<Bytes> {
    fn encode<W: io::Write>(&self, mut w: W) -> io::Result<usize> {
        let len = u32::try_from(self.0.len())
            .ok()
            .filter(|len| *len <= ENTRY_BYTES_MAX);
        let len =
            len.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a log entry above 4 MiB"))?;
        let head = len.encode(&mut w)? + (!len).encode(&mut w)?;
        w.write_all(&self.0)?;
        Ok(head + self.0.len())
    }
}

impl Decode for Record<Bytes> {
    fn decode<R: io::Read>(mut r: R) -> io::Result<Self> {
        let (len, inverted) = (u32::decode(&mut r)?, u32::decode(&mut r)?);
        if len != !inverted || len > ENTRY_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the length of an entry is damaged",
            ));
        }
        let mut bytes = vec![0; len as usize];
        r.read_exact(&mut bytes)?;
        Ok(Self(bytes.into()))
    }
}
