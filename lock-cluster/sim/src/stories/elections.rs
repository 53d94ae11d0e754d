//! Elections, one every half time to live, for ten times to live.
//!
//! Each leader is killed, cut off or stopped in its turn. Time stands still while nobody leads, so a careless cluster
//! could let a dead session live for ever; a hasty one could let a live session die, whose keep-alives come late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::{Refusal, Reply, SessionId};
use lock_node::ServiceRt;
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{STEP, hold, leader, nodes_alone, open};
use crate::client::Asking;
use crate::cluster::{Answer, Request};
use crate::runtime::{Scope, SimRt, take_panics};
use crate::world::World;

const TTL: Duration = Duration::from_secs(6);
const ELECTIONS: u32 = 20;
/// A node that has not answered a keep-alive by then is taken for stuck, by the real client, too.
const TRY: Duration = Duration::from_millis(1_500);
const KEEPERS: u64 = 5;
/// A dead session is gone by then, in the time during which somebody leads.
const BOUND: Duration = Duration::from_secs(7);
/// What an election takes from that besides its own length: cluster time goes on from the last stamp before it, and
/// stamps come twice a second at least.
const LOST_STAMP: Duration = Duration::from_millis(700);

/// What came of it.
#[derive(Debug, Default)]
pub struct Elections {
    /// How often a new leader was seen.
    pub elections: u32,
    /// Sessions that were kept alive and expired all the same.
    pub live_that_expired: usize,
    /// Sessions whose keep-alives did not come through for a whole time to live.
    pub live_unheard: usize,
    /// When the dead one was gone; `None` if never.
    pub dead_gone_after: Option<Duration>,
    /// When it had to be.
    pub dead_gone_within: Duration,
    /// Panics of tasks.
    pub panics: Vec<String>,
}

/// Plays it out.
pub fn elections(seed: u64, nodes: u64) -> Elections {
    take_panics();
    let mut runtime = SimRt::with_seed(seed);
    let mut told = runtime.block_on(play(seed, nodes));
    drop(runtime);
    told.panics = take_panics();
    told
}

async fn play(seed: u64, nodes: u64) -> Elections {
    let mut rng = SmallRng::seed_from_u64(!seed);
    let mut world = nodes_alone(seed, nodes).await;
    let mut keepers = Vec::new();
    for number in 1..=KEEPERS {
        let asking = Asking::new(world.network.clone(), 100 + number, nodes, rng.random());
        let session = open(&asking, &mut rng, TTL).await;
        keepers.push(Keeper::start(asking, session, rng.random_range(-250..=250)));
    }
    let asking = Asking::new(world.network.clone(), 150, nodes, rng.random());
    let dead = open(&asking, &mut rng, TTL).await;
    hold(&asking, dead, "gate").await;

    let mut told = Elections {
        dead_gone_within: BOUND,
        ..Elections::default()
    };
    let born = world.elapsed();
    for _ in 0..ELECTIONS {
        let began = world.elapsed();
        let before = term(&world);
        unseat(&mut world, &mut rng).await;
        let mut elected = false;
        while world.elapsed() - began < TTL / 2 {
            SimRt::sleep(STEP).await;
            let newer = leader(&world).filter(|leader| leader.service().status().term > before);
            if !elected && newer.is_some() {
                elected = true;
                told.elections += 1;
            }
            if told.dead_gone_after.is_none() {
                if !elected {
                    told.dead_gone_within += STEP;
                }
                let (_, gone) = newer.map_or((0, false), |leader| {
                    leader.service().look(|state| state.session(dead).is_none())
                });
                told.dead_gone_after = gone.then(|| world.elapsed() - born);
            }
        }
        if told.dead_gone_after.is_none() {
            told.dead_gone_within += LOST_STAMP;
        }
        mend(&mut world).await;
    }
    let count = |died: fn(&Keeper) -> &AtomicBool| {
        let died = |keeper: &&Arc<Keeper>| died(keeper).load(Ordering::Relaxed);
        keepers.iter().filter(died).count()
    };
    told.live_that_expired = count(|keeper| &keeper.expired);
    told.live_unheard = count(|keeper| &keeper.lost);
    told
}

fn term(world: &World) -> u64 {
    let terms = world.statuses().into_iter().map(|status| status.term);
    terms.max().unwrap_or(0)
}

async fn unseat(world: &mut World, rng: &mut SmallRng) {
    let Some(id) = world.leader() else { return };
    match rng.random_range(0..3) {
        0 => world.crash(id).await,
        1 => world.pause(id),
        _ => {
            let others: Vec<_> = world.ids().filter(|other| *other != id).collect();
            for other in others {
                world.network.cut(id, other);
                world.network.cut(other, id);
            }
        }
    }
}

async fn mend(world: &mut World) {
    world.network.mend();
    world.resume_all();
    for id in world.dead() {
        world.start(id).await;
    }
}

/// A client that does nothing but keep its session alive.
#[derive(Default)]
struct Keeper {
    /// No keep-alive came through in time.
    lost: AtomicBool,
    /// The cluster has said that it is over.
    expired: AtomicBool,
}

impl Keeper {
    fn start(asking: Asking, session: SessionId, drift_ppm: i64) -> Arc<Self> {
        let keeper = Arc::new(Self::default());
        let scope = Scope::new("keeper", drift_ppm);
        drop(Scope::spawn(Some(scope), keep(asking, session, keeper.clone())));
        keeper
    }
}

async fn keep(asking: Asking, session: SessionId, keeper: Arc<Keeper>) {
    let mut began = SimRt::now();
    let mut deadline = began + TTL;
    loop {
        SimRt::sleep_until(began + TTL / 3).await;
        began = SimRt::now();
        let request = Request::KeepAlive(session, None);
        let too_late = || SimRt::now() >= deadline;
        match asking.until(&request, TRY, too_late).await {
            Some((sent, Answer::Done(Reply::KeptAlive { .. }))) => deadline = sent + TTL,
            None => return keeper.lost.store(true, Ordering::Relaxed),
            Some((_, Answer::Done(Reply::Refused(Refusal::SessionExpired)))) => {
                return keeper.expired.store(true, Ordering::Relaxed);
            }
            Some((_, other)) => unreachable!("a keep-alive is not answered with {other:?}"),
        }
    }
}
