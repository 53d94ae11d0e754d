//! What the log is written to: a small trait, so that the simulation can put a model of a disk here.
//!
//! A device is an ordered queue of writes in front of a medium. Writes take effect for readers at once and
//! become durable in order, some time later; `flush` reports when. That is exactly as much as a log needs, and
//! exactly what a model disk must get wrong on purpose: a crash may lose any suffix of what was not flushed.
//!
//! The device knows nothing of the consensus library: positions are `(term, index)`, entries are bytes.

use std::io;
use std::ops::Range;

use bytes::Bytes;

/// Where an entry stands in the log. Ordered as Raft orders logs: by term, then by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The leader's term.
    pub term: u64,
    /// The place in the log.
    pub index: u64,
}

/// The promise a node made in the latest term it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteRecord {
    /// The term.
    pub term: u64,
    /// Whom it votes for.
    pub node: u64,
    /// Whether a majority is known to have done the same: then `node` is that term's leader.
    pub committed: bool,
}

impl PartialOrd for VoteRecord {
    /// Two different votes of one term are not comparable, unless one of them was granted by a majority.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other {
            return Some(std::cmp::Ordering::Equal);
        }
        match (self.term, self.committed).cmp(&(other.term, other.committed)) {
            std::cmp::Ordering::Equal => None,
            order => Some(order),
        }
    }
}

/// What a device holds besides entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// The last vote saved.
    pub vote: Option<VoteRecord>,
    /// The last entry, or the last purged one if there is none behind it.
    pub last: Option<LogPosition>,
    /// Up to where entries are known to be committed. A hint: it may lag behind.
    pub committed: Option<LogPosition>,
    /// Up to where entries were removed because a snapshot has them.
    pub purged: Option<LogPosition>,
}

/// Told when everything written before is durable, or why it never will be.
pub type Flushed = Box<dyn FnOnce(io::Result<()>) + Send>;

/// The log's medium. Calls come one at a time and must not wait for it.
pub trait LogDevice: Send + 'static {
    /// The state including writes that are not durable yet.
    fn state(&self) -> DeviceState;
    /// Entries in `range`, as far as they exist, stopping before the sum of their sizes exceeds `bytes_max`,
    /// but never before the first.
    fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<(LogPosition, Bytes)>>;
    /// Queues a vote.
    fn save_vote(&mut self, vote: VoteRecord) -> io::Result<()>;
    /// Queues entries that follow the last one.
    fn append(&mut self, entries: Vec<(LogPosition, Bytes)>) -> io::Result<()>;
    /// Queues the removal of the entry at `index` and of all behind it.
    fn truncate(&mut self, index: u64) -> io::Result<()>;
    /// Queues the removal of all entries up to `upto`, which may lie beyond the last.
    fn purge(&mut self, upto: LogPosition) -> io::Result<()>;
    /// Queues the hint.
    fn save_committed(&mut self, committed: LogPosition) -> io::Result<()>;
    /// How often the medium was made durable since it was opened; fewer times than it was asked for, where one served
    /// several flushes.
    fn syncs(&self) -> u64;
    /// Asks for everything queued to be made durable; `done` is called in the order of the flushes.
    fn flush(&mut self, done: Flushed) -> io::Result<()>;
}
