//! Who breaks things.
//!
//! Each seed picks which kinds of faults it uses at all: a run in which everything fails all the time explores less
//! than one that, say, only ever pauses leaders and slows disks. Half of the faults that strike a node are aimed at
//! the leader, for it is there that most can go wrong.

use std::time::Duration;

use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::network::{Endpoint, Weather};
use crate::runtime::SimRt;
use crate::world::World;

/// Between two faults.
const PAUSE_MS: std::ops::Range<u64> = 50..1_200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A node dies and loses what it had not flushed.
    Crash,
    /// All nodes die at once: only what is on a majority of the disks is left.
    PowerCut,
    /// A leader with a slow disk dies in the middle of a flush.
    CrashInFlush,
    /// A node stops, and goes on later as if nothing had happened.
    Pause,
    /// A node is cut off, both ways.
    Isolate,
    /// The nodes fall into two halves that do not reach each other.
    Split,
    /// One direction of one link, between nodes, fails.
    CutOneWay,
    /// A node hears nobody, or is heard by nobody.
    HalfDeaf,
    /// A client and a node do not reach each other.
    CutClient,
    /// Messages are lost, doubled, and late.
    BadWeather,
    /// A disk becomes slow.
    SlowDisk,
    /// A snapshot is taken now.
    Snapshot,
    /// A client's process dies; another takes its place.
    CrashClient,
    /// A client's process stands still.
    PauseClient,
    /// An administrator breaks a lock.
    Break,
    /// The leader hands over to another node, with nothing wrong at all.
    HandOver,
    /// A member is removed, be it the leader, or a removed one is taken in again.
    Members,
}

const ALL: [Fault; 17] = [
    Fault::Crash,
    Fault::PowerCut,
    Fault::CrashInFlush,
    Fault::Pause,
    Fault::Isolate,
    Fault::Split,
    Fault::CutOneWay,
    Fault::HalfDeaf,
    Fault::CutClient,
    Fault::BadWeather,
    Fault::SlowDisk,
    Fault::Snapshot,
    Fault::CrashClient,
    Fault::PauseClient,
    Fault::Break,
    Fault::HandOver,
    Fault::Members,
];

/// Breaks things in `world` until `end`, and leaves them broken.
pub(crate) async fn rage(world: &mut World, seed: u64, end: Duration) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let kinds: Vec<Fault> = ALL
        .into_iter()
        .filter(|_| rng.random_range(0..100) < 55)
        .collect();
    world.trace.tell(format!("faults of this seed: {kinds:?}"));
    while world.elapsed() < end {
        SimRt::sleep(Duration::from_millis(rng.random_range(PAUSE_MS))).await;
        // Mending goes on all the time, or after a while nothing would be left to break.
        if rng.random_range(0..100) < 45 {
            mend_something(world, &mut rng).await;
        } else if let Some(fault) = kinds.choose(&mut rng) {
            strike(world, *fault, &mut rng).await;
        }
    }
}

async fn mend_something(world: &mut World, rng: &mut SmallRng) {
    match rng.random_range(0..5) {
        0 | 1 => {
            if let Some(id) = world.some_dead(rng) {
                world.start(id).await;
            }
        }
        2 => {
            world.trace.tell("the links are mended");
            world.network.mend();
        }
        3 => {
            world.trace.tell("the weather is fine");
            world.network.set_weather(FINE);
            world.disks_are_well();
        }
        _ => world.resume_all(),
    }
}

/// Even on a good day.
const FINE: Weather = Weather {
    lost: 5,
    doubled: 5,
    slow: 5,
};

async fn strike(world: &mut World, fault: Fault, rng: &mut SmallRng) {
    let node = match rng.random_bool(0.5) {
        true => world.leader().unwrap_or(1),
        false => rng.random_range(1..=world.nodes()),
    };
    let other = rng.random_range(1..=world.nodes());
    let client = world.some_client(rng);
    world.trace.tell(format!("fault: {fault:?} at n{node}"));
    match fault {
        Fault::Crash => world.crash(node).await,
        Fault::PowerCut => {
            for id in 1..=world.nodes() {
                world.crash(id).await;
            }
            SimRt::sleep(Duration::from_millis(rng.random_range(50..1_000))).await;
            for id in 1..=world.nodes() {
                world.start(id).await;
            }
        }
        Fault::CrashInFlush => {
            world.disk(node).set_ailing(true);
            SimRt::sleep(Duration::from_millis(rng.random_range(50..700))).await;
            world.crash(node).await;
            world.disk(node).set_ailing(false);
        }
        Fault::Pause => world.pause(node),
        Fault::Isolate => {
            for other in world.endpoints() {
                world.network.cut(node, other);
                world.network.cut(other, node);
            }
        }
        Fault::Split => {
            let far: Vec<Endpoint> = world.ids().filter(|_| rng.random_bool(0.5)).collect();
            for near in world.ids().filter(|id| !far.contains(id)) {
                for other in &far {
                    world.network.cut(near, *other);
                    world.network.cut(*other, near);
                }
            }
        }
        Fault::CutOneWay => world.network.cut(node, other),
        Fault::HalfDeaf => {
            let deaf = rng.random_bool(0.5);
            for other in 1..=world.nodes() {
                let (from, to) = if deaf { (other, node) } else { (node, other) };
                world.network.cut(from, to);
            }
        }
        Fault::CutClient => {
            world.network.cut(node, client);
            if rng.random_bool(0.5) {
                world.network.cut(client, node);
            }
        }
        Fault::BadWeather => world.network.set_weather(Weather {
            lost: rng.random_range(0..150),
            doubled: rng.random_range(0..100),
            slow: rng.random_range(0..200),
        }),
        Fault::SlowDisk => world.disk(node).set_ailing(true),
        Fault::Snapshot => world.snapshot(node),
        Fault::CrashClient => world.replace_client(client),
        Fault::PauseClient => world.pause_client(client),
        Fault::Break => world.break_some_lock(rng),
        Fault::HandOver => world.hand_over(other),
        Fault::Members => world.change_members(rng),
    }
}

/// Everybody who is not a node.
pub(crate) fn client_endpoint(number: u64) -> Endpoint {
    100 + number
}
