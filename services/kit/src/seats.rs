//! Who may stay when a port is full.
//!
//! A port takes so many connections and no more: each costs a file descriptor and some memory, and both run out. When
//! all seats are taken, **the connection that has had nothing to do for the longest loses its seat** to the newcomer;
//! one that is being served never does. So a crowd that connects and says nothing, or says it a byte at a time, only
//! drives out itself, and whoever has something to ask still gets in. Only when everybody is being served is the
//! newcomer hung up on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The seats of one port; clones share them.
#[derive(Clone, Debug)]
pub struct Seats(Arc<Mutex<Room>>);

#[derive(Debug)]
struct Room {
    max: usize,
    taken: usize,
    /// Connections with nothing to do, the longest idle first.
    idle: BTreeMap<u64, CancellationToken>,
    next_ticket: u64,
}

/// One connection's seat, given back when dropped. Idle at first.
#[derive(Debug)]
pub struct Seat {
    seats: Seats,
    /// Its key among the idle ones; [`AT_WORK`] otherwise.
    ticket: AtomicU64,
    lost: CancellationToken,
}

const AT_WORK: u64 = 0;

impl Seats {
    /// Seats for `max` connections.
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Mutex::new(Room {
            max,
            taken: 0,
            idle: BTreeMap::new(),
            next_ticket: AT_WORK + 1,
        })))
    }

    /// A seat for a new connection; `None` when all are taken by connections at work.
    pub fn take(&self) -> Option<Seat> {
        let mut room = self.room();
        if room.taken >= room.max {
            let (_, evicted) = room.idle.pop_first()?;
            evicted.cancel();
            room.taken -= 1;
        }
        room.taken += 1;
        let lost = CancellationToken::new();
        let ticket = room.draw(lost.clone());
        Some(Seat {
            seats: self.clone(),
            ticket: AtomicU64::new(ticket),
            lost,
        })
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    fn draw(&mut self, lost: CancellationToken) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.idle.insert(ticket, lost);
        ticket
    }
}

impl Seat {
    /// There is something to do: the seat cannot be lost until [`Self::rest`]. No effect if it was lost before.
    pub fn work(&self) {
        let mut room = self.seats.room();
        if room.idle.remove(&self.ticket.load(Ordering::Relaxed)).is_some() {
            self.ticket.store(AT_WORK, Ordering::Relaxed);
        }
    }

    /// There is nothing to do any more.
    pub fn rest(&self) {
        let mut room = self.seats.room();
        if self.ticket.load(Ordering::Relaxed) == AT_WORK {
            let ticket = room.draw(self.lost.clone());
            self.ticket.store(ticket, Ordering::Relaxed);
        }
    }

    /// Resolves when the seat was lost to somebody else. The connection should be gone at once.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut room = self.seats.room();
        let ticket = self.ticket.load(Ordering::Relaxed);
        // One that was lost has been given to somebody else already.
        if ticket == AT_WORK || room.idle.remove(&ticket).is_some() {
            room.taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_lost(seat: &Seat) -> bool {
        seat.lost.is_cancelled()
    }

    #[test]
    fn the_longest_idle_makes_room_and_one_at_work_never() {
        let seats = Seats::new(3);
        let [first, second, third] = [(); 3].map(|()| seats.take().expect("there is room"));
        first.work();
        let fourth = seats
            .take()
            .expect("the second has had nothing to do for the longest");
        assert!(has_lost(&second) && !has_lost(&first) && !has_lost(&third));
        drop(second);

        first.rest();
        let fifth = seats
            .take()
            .expect("the third makes room: the first was at work just now");
        assert!(has_lost(&third) && !has_lost(&first));
        for seat in [&first, &fourth, &fifth] {
            seat.work();
        }
        assert!(seats.take().is_none(), "everybody is at work");
    }

    #[test]
    fn every_seat_comes_back_once() {
        let seats = Seats::new(2);
        for _ in 0..10 {
            let idle = seats.take().expect("there is room");
            let busy = seats.take().expect("there is room");
            busy.work();
            let evicting = seats.take().expect("the idle one makes room");
            // Too late: it has no seat to keep.
            idle.work();
            idle.rest();
            evicting.work();
            assert!(seats.take().is_none());
        }
        assert_eq!(seats.room().taken, 0);
    }
}
