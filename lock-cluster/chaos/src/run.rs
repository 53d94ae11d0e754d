//! From a plan to a verdict: faults, then none, then the checks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use lock_client::LockClient;
use lock_core::{AcquireId, LockNames, SessionId};
use lock_history::{Attempt, Moment, Verdict, What, linear};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use testkit::found_within;
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use crate::account;
use crate::client::{Client, Crowd, TTL_MAX};
use crate::cluster::{Cluster, Setup};
use crate::nemesis::World;
use crate::plan::{Plan, Plant};
use crate::scribe::Scribe;

/// Names that clients lock; the first ones more than the others.
const NAMES: [&str; 8] = [
    "gate",
    "yard",
    "event/rock",
    "event/jazz",
    "event/folk",
    "event/soul",
    "event/punk",
    "event/fado",
];
/// Everything that was broken has to work again by then, on a machine that does other things, too.
const HEAL_WITHIN: Duration = Duration::from_secs(30);
/// A dead session is gone within its TTL and this: a second, and an election or two on a busy machine.
const EXPIRY_SLACK: Duration = Duration::from_secs(5);
/// How long clients go on in the healed cluster.
const WORK_ON: Duration = Duration::from_secs(1);

/// What a run has shown.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What must not be, each with the name of the check that saw it. Empty: nothing was found.
    pub violations: Vec<String>,
    /// Everything that clients saw.
    pub history: Vec<Moment>,
    /// Acquires that were told an outcome.
    pub told: usize,
    /// Those of them that were granted: what `--min-ops` counts.
    pub grants: usize,
    /// Acquires nobody knows the outcome of.
    pub unknown: usize,
    /// Faults injected.
    pub faults: usize,
    /// Pieces of single locks' histories that were explained, and that were passed over.
    pub explained: (usize, usize),
}

/// Carries out a plan. The nodes' logs are copied into `keep` if something was found.
///
/// # Errors
/// If the machine does not let it: a program is missing, a port is taken.
pub async fn run(plan: &Plan, setup: Setup, keep: Option<&Path>) -> anyhow::Result<Report> {
    let cluster = Cluster::start(plan.nodes, setup).await?;
    let crowd = Crowd {
        config: cluster.client_config(),
        names: NAMES.map(str::to_owned).into(),
        scribe: Scribe::default(),
        stopping: Arc::new(AtomicBool::new(false)),
    };
    let world = Arc::new(World {
        cluster,
        crowd,
        clients: Vec::new().into(),
    });
    let faults = rage(&world, plan).await?;
    let mut violations = become_well(&world, plan).await?;
    violations.extend(
        world
            .cluster
            .misdeeds()
            .into_iter()
            .map(|what| format!("nodes: {what}")),
    );
    let mut report = judge(&world.crowd.scribe, violations);
    report.faults = faults;
    if let Some(keep) = keep.filter(|_| !report.violations.is_empty()) {
        for at in world.cluster.all() {
            std::fs::copy(world.cluster.log(at), keep.join(format!("node-{}.log", at + 1)))?;
        }
    }
    Ok(report)
}

/// The first half: clients, and everything that can go wrong. Answers how much did.
async fn rage(world: &Arc<World>, plan: &Plan) -> anyhow::Result<usize> {
    let mut rng = SmallRng::seed_from_u64(!plan.seed);
    if plan.plant == Some(Plant::EternalSession) {
        world.hold_for_ever().await?;
    }
    for _ in 0..plan.clients {
        let client = Client::start(world.crowd.clone(), rng.random())?;
        world.clients().push(Some(client));
    }
    tokio::spawn(world.clone().look(world.cluster.questions()?, plan.clone()));
    let lanes = plan.lanes();
    let faults = lanes.iter().map(Vec::len).sum();
    let mut suffering = JoinSet::new();
    for lane in lanes {
        suffering.spawn(world.clone().suffer(lane, rng.random()));
    }
    if plan.plant == Some(Plant::ForgetfulDisks) {
        let (world, half) = (world.clone(), Duration::from_secs(plan.seconds) / 2);
        suffering.spawn(async move {
            sleep(half).await;
            world.forget_everything().await
        });
    }
    while let Some(suffered) = suffering.join_next().await {
        suffered.context("a lane of faults panicked")??;
    }
    Ok(faults)
}

/// The second half: what must come to be once nothing is broken any more.
async fn become_well(world: &Arc<World>, plan: &Plan) -> anyhow::Result<Vec<String>> {
    let (cluster, crowd) = (&world.cluster, &world.crowd);
    let mut missing = Vec::new();
    if let Err(error) = cluster.heal(HEAL_WITHIN).await {
        missing.push(format!("liveness: {error:#}"));
        return Ok(missing);
    }
    // Work goes on in the healed cluster, before it is wound up.
    sleep(WORK_ON).await;
    crowd.stopping.store(true, Ordering::Relaxed);
    let finished = || world.clients().iter().flatten().all(Client::has_finished);
    if found_within(HEAL_WITHIN, async || finished().then_some(()))
        .await
        .is_none()
    {
        missing.push("liveness: a client cannot finish".to_owned());
    }
    world.clients().clear();
    let last = match acquire_everything(crowd, plan).await {
        Ok(session) => session,
        Err(what) => {
            missing.push(format!("liveness: {what:#}"));
            return Ok(missing);
        }
    };
    let empty = async || cluster.nothing_is_left().await.then_some(());
    if found_within(TTL_MAX + EXPIRY_SLACK, empty).await.is_none() {
        let leader = cluster.leader().await.unwrap_or(0);
        missing.push(format!(
            "liveness: not everything is gone: {:?}",
            cluster.status(leader).await
        ));
    }
    missing.extend(account::check(cluster, last).await?);
    Ok(missing)
}

/// Every name can be had, by somebody new, as soon as the dead have been found out. Answers under which session.
async fn acquire_everything(crowd: &Crowd, plan: &Plan) -> anyhow::Result<Uuid> {
    let mut config = crowd.config.clone();
    config.ttl = Duration::from_secs(30);
    config.label = "prober".to_owned();
    let client = LockClient::connect(config).await?;
    let session = SessionId::new(Uuid::from_u128(u128::from(plan.seed)));
    let mut grants = Vec::new();
    for (number, name) in (1..).zip(crowd.names.iter()) {
        let names = [name.clone()];
        let id = AcquireId::new(number);
        let attempt = Attempt { session, id };
        crowd.scribe.note(What::Asked(attempt, LockNames::parse(&names)?));
        let grant = client.acquire(&names, TTL_MAX + EXPIRY_SLACK).await;
        let grant = Arc::new(grant.with_context(|| format!("{name} cannot be acquired"))?);
        crowd.scribe.granted(attempt, &grant);
        grants.push((attempt, grant));
    }
    let real = client.session_id().context("the prober's session ended")?;
    for (attempt, grant) in grants {
        crowd.scribe.let_go(attempt);
        let grant = Arc::into_inner(grant).context("somebody else has the grant")?;
        grant.release().await?;
        crowd.scribe.note(What::Released(attempt));
    }
    client.close().await;
    if client.session_id().is_some() {
        bail!("the prober's session cannot be closed");
    }
    Ok(real)
}

/// The safety half: what must not have happened at any time.
fn judge(scribe: &Scribe, mut violations: Vec<String>) -> Report {
    let history = scribe.history();
    violations.extend(
        scribe
            .complaints()
            .into_iter()
            .map(|what| format!("client: {what}")),
    );
    let (found, explained) = check(&history);
    violations.extend(found);
    let count = |is: fn(&What) -> bool| history.iter().filter(|moment| is(&moment.what)).count();
    let asked = count(|what| matches!(what, What::Asked(..)));
    let told = count(|what| matches!(what, What::Told(..)));
    let grants = count(|what| matches!(what, What::Told(_, Verdict::Granted(_))));
    Report {
        violations,
        told,
        grants,
        unknown: asked.saturating_sub(told),
        faults: 0,
        explained,
        history,
    }
}

/// What is wrong with a history, and how many pieces of it were explained and passed over.
pub fn check(history: &[Moment]) -> (Vec<String>, (usize, usize)) {
    let mut violations: Vec<String> = lock_history::check(history)
        .into_iter()
        .map(|what| format!("history: {what}"))
        .collect();
    let found = linear::check(history);
    violations.extend(found.violations.iter().map(|what| format!("linear: {what}")));
    (violations, (found.searched, found.passed_over))
}
