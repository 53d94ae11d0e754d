//! From a plan to a verdict.

use std::time::Duration;

use lock_core::{AcquireAnswer, AcquireId, LockNames, Reply, SessionId, TtlMs, WaitMs};
use lock_node::service::FeedEvent;
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

use crate::client::{Asking, TTL_MAX};
use crate::cluster::{Answer, Request};
use crate::nemesis;
use crate::plan::Plan;
use crate::runtime::{SimRt, take_panics};
use crate::trace::Trace;
use crate::world::{Counts, World};
use lock_history::book::Book;
use lock_history::{Verdict, What};

/// Two elections, with all their bad luck, and a snapshot in between.
const SETTLE: Duration = Duration::from_secs(8);
/// Cluster time may stand still that long while a leader is found; then comes the expiry itself.
const EXPIRY_SLACK: Duration = Duration::from_secs(2);
/// Who acquires every name in the end.
const PROBER: u64 = 198;

/// What a run has shown.
#[derive(Clone, Debug)]
pub struct Report {
    /// Of which run.
    pub seed: u64,
    /// Two runs with the same were the same, event by event.
    pub hash: u64,
    /// How many events are in the hash.
    pub events: u64,
    /// What must not be, each with the name of the check that saw it. Empty: nothing was found.
    pub violations: Vec<String>,
    /// How much happened.
    pub counts: Counts,
    /// Everything that happened, if the plan asked for it.
    pub lines: Vec<String>,
}

/// Carries out a plan. Every call with the same plan returns the same.
pub fn run(plan: &Plan) -> Report {
    take_panics();
    let trace = Trace::new(plan.readable);
    let mut runtime = SimRt::with_seed(plan.seed);
    let (mut violations, counts) = runtime.block_on(play(plan, trace.clone()));
    // Whatever is still on is switched off, with the runtime there for its destructors.
    drop(runtime);
    violations.extend(take_panics().into_iter().map(|panic| format!("panic: {panic}")));
    let (hash, events) = trace.hash();
    Report {
        seed: plan.seed,
        hash,
        events,
        violations,
        counts,
        lines: trace.take_lines(),
    }
}

async fn play(plan: &Plan, trace: Trace) -> (Vec<String>, Counts) {
    let mut rng = SmallRng::seed_from_u64(!plan.seed);
    let mut world = World::start_all(plan, trace).await;
    nemesis::rage(
        &mut world,
        rng.random(),
        Duration::from_secs(plan.virtual_seconds),
    )
    .await;
    world.heal().await;
    let mut violations = become_well(&mut world, &mut rng).await;
    let linear = lock_history::linear::check(&world.scribe.history());
    violations.extend(verdict(&world));
    violations.extend(linear.violations.iter().map(|what| format!("linear: {what}")));
    (violations, count(&world, &linear))
}

/// The liveness half: what must come to be once nothing is broken.
async fn become_well(world: &mut World, rng: &mut SmallRng) -> Vec<String> {
    let mut missing = Vec::new();
    if !eventually(SETTLE, || world.leader().is_some()).await {
        missing.push("liveness: no leader".to_owned());
    }
    if !world.restore_members().await {
        missing.push("liveness: the removed nodes cannot be taken in again".to_owned());
    }
    // Work goes on in the healed cluster, before it is wound up.
    SimRt::sleep(Duration::from_secs(1)).await;
    world.stop_clients();
    if !eventually(SETTLE + TTL_MAX, || world.clients_have_finished()).await {
        missing.push("liveness: a client cannot finish".to_owned());
    }
    if let Err(what) = acquire_everything(world, rng).await {
        missing.push(format!("liveness: {what}"));
    }
    let empty = || {
        world
            .statuses()
            .iter()
            .all(|status| status.counts == lock_core::Counts::default())
    };
    if !eventually(TTL_MAX + EXPIRY_SLACK, empty).await {
        let left: Vec<_> = world.statuses().iter().map(|status| status.counts).collect();
        missing.push(format!("liveness: not everything is gone: {left:?}"));
    }
    let idle = || {
        let statuses = world.statuses();
        statuses
            .iter()
            .all(|status| status.waiting_here == 0 && status.queued_here == 0)
    };
    // A request whose client hung up through a broken link waits for its answer a little longer.
    if !eventually(SETTLE, idle).await {
        missing.push("liveness: a node still waits for somebody".to_owned());
    }
    let level = || {
        let mut applied: Vec<_> = world.statuses().iter().map(|status| status.applied).collect();
        applied.dedup();
        applied.len() == 1
    };
    if !eventually(SETTLE, level).await {
        missing.push("liveness: the nodes do not catch up".to_owned());
    }
    missing
}

/// Every name can be had, by somebody new, as soon as the dead have been found out.
async fn acquire_everything(world: &World, rng: &mut SmallRng) -> Result<(), String> {
    let asking = Asking::new(world.network.clone(), PROBER, world.nodes(), rng.random());
    let session = SessionId::new(Uuid::from_u128(rng.random()));
    let ttl = TtlMs::new(60_000).expect("within the limits");
    let ask = async |request: Request| {
        let answer = asking.until(&request, Duration::from_secs(15), || false);
        match SimRt::timeout(Duration::from_secs(30), answer).await {
            Ok(Some((_, answer))) => Ok(answer),
            _ => Err(format!("no answer to {request:?}")),
        }
    };
    ask(Request::Open(session, ttl)).await?;
    for (number, name) in world.names.iter().enumerate() {
        let wait = TTL_MAX + EXPIRY_SLACK;
        let wait = WaitMs::new(wait.as_millis() as u64).expect("within the limits");
        let attempt = lock_history::Attempt {
            session,
            id: AcquireId::new(number as u64 + 1),
        };
        let names = LockNames::new([name.clone()]).expect("one name");
        world.scribe.note(PROBER, What::Asked(attempt, names.clone()));
        match ask(Request::Acquire(session, attempt.id, names, wait)).await? {
            Answer::Acquired(Ok(AcquireAnswer::Granted { fencing_token, .. })) => {
                let granted = Verdict::Granted(fencing_token.get());
                world.scribe.note(PROBER, What::Told(attempt, granted));
            }
            other => return Err(format!("{name} cannot be acquired: {other:?}")),
        }
    }
    world.scribe.note(PROBER, What::Distrusted(session));
    match ask(Request::Close(session)).await? {
        Answer::Done(Reply::SessionClosed) => Ok(()),
        other => Err(format!("the session cannot be closed: {other:?}")),
    }
}

/// The safety half: what must not have happened at any time.
fn verdict(world: &World) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    found.extend(
        world
            .agreement
            .violations()
            .into_iter()
            .map(|what| format!("agreement: {what}")),
    );
    let history = world.scribe.history();
    found.extend(
        lock_history::check(&history)
            .into_iter()
            .map(|what| format!("history: {what}")),
    );
    let mut book = Book::default();
    for (index, events) in world.agreement.events() {
        for event in &events {
            if let FeedEvent::Lock(event) = event
                && let Err(what) = book.take(event)
            {
                found.push(format!("book: entry {index}: {what}"));
            }
        }
        if let Err(what) = book.close_entry() {
            found.push(format!("book: entry {index}: {what}"));
        }
    }
    found
}

fn count(world: &World, linear: &lock_history::linear::Found) -> Counts {
    let (messages, lost_messages) = world.network.messages();
    let (applied, restored) = world.agreement.counts();
    let history = world.scribe.history();
    let grants = history
        .iter()
        .filter(|moment| matches!(moment.what, What::Told(_, Verdict::Granted(_))))
        .count();
    Counts {
        grants: grants as u64,
        searched: linear.searched as u64,
        passed_over: linear.passed_over as u64,
        messages,
        lost_messages,
        lost_writes: world.lost_writes(),
        applied,
        restored,
        term: world
            .statuses()
            .iter()
            .map(|status| status.term)
            .max()
            .unwrap_or(0),
        ..world.counts
    }
}

/// Whether it became true in time.
async fn eventually(patience: Duration, what: impl Fn() -> bool) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    while !what() {
        if waited >= patience {
            return false;
        }
        SimRt::sleep(LOOK_EVERY).await;
        waited += LOOK_EVERY;
    }
    true
}
