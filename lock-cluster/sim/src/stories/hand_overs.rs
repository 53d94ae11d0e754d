//! Two want the same lock all the time: whoever has handed it over gets in line again before the other does.

use std::time::Duration;

use lock_core::{AcquireAnswer, AcquireId, Command, LockNames, SessionId, WaitMs};
use lock_node::LockService;
use openraft::AsyncRuntime;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::{leader, nodes_alone, open};
use crate::client::Asking;
use crate::runtime::SimRt;

const TTL: Duration = Duration::from_secs(60);
/// From getting in line to the other's release: longer than the batcher's turns take, and shorter than company is
/// waited for.
const PACE: Duration = Duration::from_micros(500);

/// What it cost.
#[derive(Debug)]
pub struct HandOvers {
    /// How often the lock was handed over.
    pub hand_overs: u64,
    /// Entries that the log grew by meanwhile.
    pub entries: u64,
}

/// Plays it out.
pub fn hand_overs(seed: u64, hand_overs: u64) -> HandOvers {
    let mut runtime = SimRt::with_seed(seed);
    let told = runtime.block_on(play(seed, hand_overs));
    drop(runtime);
    told
}

async fn play(seed: u64, hand_overs: u64) -> HandOvers {
    let mut rng = SmallRng::seed_from_u64(!seed);
    let world = nodes_alone(seed, 3).await;
    let asking = Asking::new(world.network.clone(), 150, 3, seed);
    let mut holder = (open(&asking, &mut rng, TTL).await, AcquireId::new(1));
    let mut other = (open(&asking, &mut rng, TTL).await, AcquireId::new(1));
    let service = leader(&world).expect("it was formed").service().clone();
    acquire(service.clone(), holder).await;

    let before = service.status().last_log;
    for _ in 0..hand_overs {
        let in_line = SimRt::spawn(acquire(service.clone(), other));
        SimRt::sleep(PACE).await;
        let (session_id, acquire_id) = holder;
        let release = Command::Release {
            session_id,
            acquire_id,
        };
        service.propose(release).await.expect("there is a leader");
        in_line.await.expect("it is its turn");
        let next = AcquireId::new(acquire_id.get() + 1);
        (holder, other) = (other, (session_id, next));
    }
    let entries = service
        .status()
        .last_log
        .zip(before)
        .map(|(now, then)| now - then);
    HandOvers {
        hand_overs,
        entries: entries.expect("sessions were opened before"),
    }
}

async fn acquire(service: LockService<SimRt>, (session_id, acquire_id): (SessionId, AcquireId)) {
    let names = LockNames::parse(&["gate"]).expect("one name");
    let wait = WaitMs::new(10_000).expect("within the limits");
    let acquired = service.acquire(session_id, acquire_id, names, wait).await;
    assert!(
        matches!(acquired, Ok(Ok(AcquireAnswer::Granted { .. }))),
        "{acquired:?}"
    );
}
