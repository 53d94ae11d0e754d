//! Many sessions are kept alive, one after the other, and somebody is in a hurry.

use std::time::Duration;

use lock_core::{Command, SessionId};
use lock_node::LockService;
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{leader, nodes_alone, open};
use crate::client::Asking;
use crate::runtime::{SimRt, true_ns};

const SESSIONS: usize = 60;
const TTL: Duration = Duration::from_secs(60);
/// From one keep-alive to the next.
const PACE: Duration = Duration::from_millis(1);
/// How often somebody hurries.
const HURRIES: usize = 10;

/// What it cost.
#[derive(Debug)]
pub struct Shared {
    /// Keep-alives sent, a millisecond apart.
    pub keep_alives: usize,
    /// Entries that the log grew by meanwhile.
    pub entries: u64,
    /// How long a command took that came right behind a keep-alive; the shortest first.
    pub hurried: Vec<Duration>,
}

/// Plays it out.
pub fn keep_alives(seed: u64) -> Shared {
    let mut runtime = SimRt::with_seed(seed);
    let told = runtime.block_on(play(seed));
    drop(runtime);
    told
}

async fn play(seed: u64) -> Shared {
    let mut rng = SmallRng::seed_from_u64(!seed);
    let world = nodes_alone(seed, 3).await;
    let asking = Asking::new(world.network.clone(), 150, 3, rng.random());
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(open(&asking, &mut rng, TTL).await);
    }
    let service = leader(&world).expect("it was formed").service().clone();

    let before = service.status().last_log;
    let mut sent = Vec::new();
    for session in &sessions {
        sent.push(SimRt::spawn(keep_alive(service.clone(), *session)));
        SimRt::sleep(PACE).await;
    }
    for one in sent {
        one.await.expect("it is answered");
    }
    let entries = service
        .status()
        .last_log
        .zip(before)
        .map(|(now, then)| now - then);

    let mut hurried = Vec::new();
    for _ in 0..HURRIES {
        let first = SimRt::spawn(keep_alive(service.clone(), sessions[0]));
        SimRt::sleep(PACE).await;
        let began = true_ns();
        service.propose(Command::Expire).await.expect("there is a leader");
        hurried.push(Duration::from_nanos(true_ns() - began));
        first.await.expect("it was taken along");
    }
    hurried.sort();
    Shared {
        keep_alives: sessions.len(),
        entries: entries.expect("sessions were opened before"),
        hurried,
    }
}

async fn keep_alive(service: LockService<SimRt>, session_id: SessionId) {
    let command = Command::KeepAlive {
        session_id,
        acknowledged: None,
    };
    service.propose(command).await.expect("there is a leader");
}
