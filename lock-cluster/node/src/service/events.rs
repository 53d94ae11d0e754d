//! (signatures first)

use lock_core::Event;

/// One item of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedEvent {
    /// Something the state machine did.
    Lock(Event),
    /// A new leader's first command was applied.
    LeaderChanged {
        /// In which term.
        term: u64,
        /// Who leads.
        leader: u64,
    },
}

/// All that one log entry brought about, in order; an index appears once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedItem {
    /// The entry's log index.
    pub index: u64,
    /// What it brought about.
    pub events: Vec<FeedEvent>,
}

/// The history asked for is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("events before log index {resume_from} are gone")]
pub struct Compacted {
    /// Ask again from here, after reading the state.
    pub resume_from: u64,
}

/// The events from one log index on, for as long as one cares to listen.
pub struct EventFeed {
    next: u64,
}

impl EventFeed {
    /// The next item, waiting for it if need be. A reader that falls behind the ring is told so.
    pub async fn next(&mut self) -> Result<FeedItem, Compacted> {
        Err(Compacted { resume_from: self.next })
    }
}
