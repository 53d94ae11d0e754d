//! The leader is killed: how long until somebody is granted a lock again?
//!
//! A client that has a session, and has used it a moment ago, asks right after `kill -9`; the clock runs from before
//! the kill until its grant. The killed member is started again and has caught up before the next turn. lock-node's
//! members are meanwhile kept busy by other clients, whose sessions must all live on. etcd is asked without other
//! load, through a connection to all of its members, again and again until one answers: it is here for information.

use std::time::Duration;

use anyhow::{Context as _, bail};
use lock_client::{ClientConfig, LockClient};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::{Cluster, Kind};
use crate::crowd::Crowd;
use crate::etcd::calls::Etcd;
use crate::etcd::recipe::{self, Watcher};
use crate::etcd::session::Session;

/// After this the cluster is not failing over but broken.
const GIVE_UP: Duration = Duration::from_secs(30);
/// How long etcd is given for one answer before it is asked again: short, because the try may be with the dead one.
const ETCD_TRY: Duration = Duration::from_millis(250);
/// Before etcd is asked again.
const ETCD_PAUSE: Duration = Duration::from_millis(20);

/// What the kills brought.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Failovers {
    /// From before each kill until the next grant; the report has it in a place of its own.
    #[serde(skip)]
    pub(crate) took_ms: Vec<f64>,
    /// Clients under load meanwhile.
    pub(crate) busy_clients: u32,
    /// How many of them lost their session.
    pub(crate) sessions_lost: u64,
    /// Cycles of theirs that failed.
    pub(crate) failed: u64,
}

/// Kills the leader so many times.
pub(crate) async fn run(
    kind: Kind,
    cluster: &mut Cluster,
    ttl: Duration,
    times: u32,
    busy_clients: u32,
) -> anyhow::Result<Failovers> {
    match kind {
        Kind::LockNode => of_lock_node(cluster, ttl, times, busy_clients).await,
        Kind::Etcd => of_etcd(cluster, ttl, times).await,
    }
}

async fn of_lock_node(
    cluster: &mut Cluster,
    ttl: Duration,
    times: u32,
    busy_clients: u32,
) -> anyhow::Result<Failovers> {
    cluster.ready().await?;
    let urls = cluster.urls().to_vec();
    let crowd = Crowd::start(&urls, ttl, busy_clients).await?;
    let mut config = ClientConfig::new(&urls);
    config.ttl = ttl;
    let client = LockClient::connect(config).await?;
    let name = ["failover".to_owned()];
    let mut took_ms = Vec::new();
    for turn in 0..times {
        client.acquire(&name, GIVE_UP).await?.release().await?;
        let leader = cluster.ready().await?;
        let begun = Instant::now();
        cluster.kill(leader)?;
        let grant = client
            .acquire(&name, GIVE_UP)
            .await
            .context("the next grant after a kill")?;
        note(Kind::LockNode, turn, times, begun, &mut took_ms);
        grant.release().await?;
        cluster.restart(leader)?;
    }
    cluster.ready().await?;
    client.close().await;
    let tally = crowd.stop().await?;
    Ok(Failovers {
        took_ms,
        busy_clients,
        sessions_lost: tally.sessions_lost,
        failed: tally.failed,
    })
}

async fn of_etcd(cluster: &mut Cluster, ttl: Duration, times: u32) -> anyhow::Result<Failovers> {
    let etcd = Etcd::of_any(cluster.urls())?;
    let mut took_ms = Vec::new();
    for turn in 0..times {
        let leader = cluster.ready().await?;
        // A new one each time: the stream that keeps a lease alive may have ended with a member.
        let session = open(&etcd, ttl).await?;
        let begun = Instant::now();
        cluster.kill(leader)?;
        let name = format!("failover/{turn}");
        loop {
            let mut watcher = Watcher::default();
            let asked = recipe::acquire(&session, &mut watcher, &name);
            if let Ok(Ok(_held)) = timeout(ETCD_TRY, asked).await {
                break;
            }
            if begun.elapsed() > GIVE_UP {
                bail!("etcd did not grant within {GIVE_UP:?} after a kill");
            }
            sleep(ETCD_PAUSE).await;
        }
        note(Kind::Etcd, turn, times, begun, &mut took_ms);
        cluster.restart(leader)?;
    }
    cluster.ready().await?;
    Ok(Failovers {
        took_ms,
        ..Failovers::default()
    })
}

/// A member that has just come back may refuse the first try.
async fn open(etcd: &Etcd, ttl: Duration) -> anyhow::Result<Session> {
    let deadline = Instant::now() + GIVE_UP;
    loop {
        let tried = timeout(ttl, Session::open(etcd.clone(), ttl)).await;
        match tried.context("no answer to a lease").and_then(|opened| opened) {
            Ok(session) => return Ok(session),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => sleep(ETCD_PAUSE).await,
        }
    }
}

fn note(kind: Kind, turn: u32, times: u32, begun: Instant, took_ms: &mut Vec<f64>) {
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    took_ms.push(ms);
    let turn = turn + 1;
    eprintln!(
        "failover {turn}/{times}  {}  {ms:.0} ms until the next grant",
        kind.name()
    );
}
