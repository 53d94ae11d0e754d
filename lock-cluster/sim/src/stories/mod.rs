//! Runs with a plot: a world in which all is well but for one thing, done over and over, and one promise that is
//! watched closely meanwhile. Seeds vary what is left to chance.
//!
//! The runs of [`crate::run`] find what nobody thought of. Here are the promises that they would hardly put to the
//! test: a session has to be unlucky in the same way twenty times in a row.

mod elections;
mod hand_overs;
mod keep_alives;

use std::sync::Arc;
use std::time::Duration;

use lock_core::{AcquireId, LockName, LockNames, Reply, SessionId, TtlMs, WaitMs};
use openraft::AsyncRuntime;
use rand::RngExt;
use rand::rngs::SmallRng;
use uuid::Uuid;

pub use elections::{Elections, elections};
pub use hand_overs::{HandOvers, hand_overs};
pub use keep_alives::{Shared, keep_alives};

use crate::client::Asking;
use crate::cluster::{Answer, Member, Request};
use crate::plan::Plan;
use crate::runtime::SimRt;
use crate::trace::Trace;
use crate::world::World;

/// Whoever is asked is given up after so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// Forming the cluster takes an election at most.
const FORMED: Duration = Duration::from_secs(8);
const STEP: Duration = Duration::from_millis(20);

/// A world of nodes, and nobody who uses them.
async fn nodes_alone(seed: u64, nodes: u64) -> World {
    let plan = Plan {
        nodes,
        clients: 0,
        ..Plan::new(seed)
    };
    let world = World::start_all(&plan, Trace::new(false)).await;
    let began = world.elapsed();
    while leader(&world).is_none() {
        assert!(world.elapsed() - began < FORMED, "the cluster is not formed");
        SimRt::sleep(STEP).await;
    }
    world
}

fn leader(world: &World) -> Option<Arc<Member>> {
    world.leader().and_then(|id| world.network.member(id))
}

/// Opens a session, by whichever node leads.
async fn open(asking: &Asking, rng: &mut SmallRng, ttl: Duration) -> SessionId {
    let session = SessionId::new(Uuid::from_u128(rng.random()));
    let ms = u64::try_from(ttl.as_millis()).expect("a short time");
    let ttl = TtlMs::new(ms).expect("within the limits");
    match asking
        .until(&Request::Open(session, ttl), PATIENCE, || false)
        .await
    {
        Some((_, Answer::Done(Reply::SessionOpened { .. }))) => session,
        other => unreachable!("a session is opened, not answered with {other:?}"),
    }
}

/// Has it hold one name.
async fn hold(asking: &Asking, session: SessionId, name: &str) {
    let names = LockNames::new(vec![LockName::parse(name).expect("a name")]).expect("one name");
    let acquire = Request::Acquire(session, AcquireId::new(1), names, WaitMs::ZERO);
    asking.until(&acquire, PATIENCE, || false).await;
}
