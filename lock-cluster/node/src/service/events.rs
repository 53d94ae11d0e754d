//! The feed of applied events: a bounded ring of the recent past, and whatever comes.
//!
//! Items are numbered by the log index of the entry that brought them about. All nodes apply the same entries, so
//! a reader that loses its node goes on at another one from the next index, and sees nothing twice and misses
//! nothing. When the past it asks for has left the ring (or lies inside a snapshot that this node was given), it
//! is told so and where to resume, after reading the state.
//!
//! A feed holds a place in the ring, not a queue of its own: a reader that does not read costs nothing, and falls
//! out of the ring at worst.

use std::collections::VecDeque;
use std::sync::Arc;

use lock_core::Event;

use super::Replica;

/// Events that the ring holds, over all items.
const EVENTS_MAX: usize = 16_384;

/// One thing in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedEvent {
    /// Something the state machine did.
    Lock(Event),
    /// The first command of a new leader was applied.
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
    /// Where to ask again, after reading the state: the index behind the last applied one.
    pub resume_from: u64,
}

/// The recent past.
pub(super) struct Ring {
    items: VecDeque<FeedItem>,
    events: usize,
    /// Everything from this index on is in `items`.
    complete_from: u64,
}

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            items: VecDeque::new(),
            events: 0,
            complete_from: 0,
        }
    }

    pub(super) fn push(&mut self, item: FeedItem) {
        self.events += item.events.len();
        self.items.push_back(item);
        while self.events > EVENTS_MAX && self.items.len() > 1 {
            let Some(oldest) = self.items.pop_front() else {
                break;
            };
            self.events -= oldest.events.len();
            self.complete_from = oldest.index + 1;
        }
    }

    /// The state jumped to `index` without the events in between.
    pub(super) fn reset(&mut self, index: Option<u64>) {
        self.items.clear();
        self.events = 0;
        self.complete_from = index.map_or(0, |index| index + 1);
    }

    /// The first item at `from` or behind it. `None`: there is none yet. `Err`: `from` is no longer covered.
    pub(super) fn first_from(&self, from: u64) -> Result<Option<&FeedItem>, ()> {
        if from < self.complete_from {
            return Err(());
        }
        Ok(self
            .items
            .get(self.items.partition_point(|item| item.index < from)))
    }
}

/// The events from one log index on, for as long as one cares to listen.
pub struct EventFeed {
    replica: Arc<Replica>,
    next: u64,
}

impl EventFeed {
    pub(super) fn new(replica: Arc<Replica>, next: u64) -> Self {
        Self { replica, next }
    }

    /// The index from which the feed goes on.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The next item, waiting for it if need be. Safe to drop while it waits.
    pub async fn next(&mut self) -> Result<FeedItem, Compacted> {
        let item = self.replica.item_from(self.next).await?;
        self.next = item.index + 1;
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(index: u64, events: usize) -> FeedItem {
        FeedItem {
            index,
            events: vec![FeedEvent::LeaderChanged { term: 1, leader: 1 }; events],
        }
    }

    #[test]
    fn a_reader_finds_its_place_between_the_indexes() {
        let mut ring = Ring::new();
        ring.push(item(4, 1));
        ring.push(item(9, 2));
        assert_eq!(ring.first_from(0).unwrap().map(|item| item.index), Some(4));
        assert_eq!(ring.first_from(5).unwrap().map(|item| item.index), Some(9));
        assert_eq!(ring.first_from(10).unwrap(), None);
    }

    #[test]
    fn the_oldest_items_leave_first_and_are_said_to_be_gone() {
        let mut ring = Ring::new();
        ring.push(item(1, EVENTS_MAX));
        ring.push(item(2, 1));
        assert!(ring.first_from(1).is_err());
        assert_eq!(ring.first_from(2).unwrap().map(|item| item.index), Some(2));
    }

    #[test]
    fn an_entry_with_more_events_than_the_ring_holds_is_still_told_whole() {
        let mut ring = Ring::new();
        ring.push(item(1, EVENTS_MAX + 5));
        assert_eq!(
            ring.first_from(0).unwrap().map(|item| item.events.len()),
            Some(EVENTS_MAX + 5)
        );
    }

    #[test]
    fn what_a_snapshot_skipped_is_gone() {
        let mut ring = Ring::new();
        ring.push(item(3, 1));
        ring.reset(Some(100));
        assert!(ring.first_from(3).is_err());
        assert!(ring.first_from(100).is_err());
        assert_eq!(ring.first_from(101), Ok(None));
    }
}
