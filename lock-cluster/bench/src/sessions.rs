//! What many live sessions cost the leader, and how soon they are gone when all of them die at once.
//!
//! Each session is a client of its own with a connection of its own, as so many processes would have. They die
//! without a word: nobody closes them, they are just not kept alive any more. Meanwhile a few others, who have
//! nothing to do with them, go on acquiring and releasing.

use std::time::Duration;

use lock_client::{ClientConfig, ClusterClient};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::args::SessionsArgs;
use crate::cluster::{self, Cluster, Kind};
use crate::crowd::{self, Crowd};

/// Clients that go on.
const UNRELATED: u32 = 8;
/// How long the leader is watched without any session, for comparison.
const IDLE: Duration = Duration::from_secs(5);
/// Between two looks at how many sessions are left.
const LOOK: Duration = Duration::from_millis(50);
/// How much longer than their TTL dead sessions are waited for.
const GIVE_UP: Duration = Duration::from_secs(60);

/// Opens the sessions, watches the leader, lets them die.
pub(crate) async fn run(args: &SessionsArgs) -> anyhow::Result<()> {
    let program = cluster::lock_node_program(args.cluster.lock_node.as_deref())?;
    let dir = crate::data_dir(&args.cluster)?;
    let mut cluster = Cluster::start(Kind::LockNode, &program, dir.path()).await?;
    let leader = cluster.ready().await?;
    let ttl = Duration::from_millis(args.ttl_ms);
    let idle = busy_percent(&cluster, leader, IDLE).await?;
    eprintln!("the leader without sessions: {idle:.1} % of a core");

    let begun = Instant::now();
    let clients = crowd::open(cluster.urls(), ttl, 0..args.sessions, "session").await?;
    eprintln!(
        "{} sessions opened in {:.1} s",
        args.sessions,
        begun.elapsed().as_secs_f64()
    );
    let alive = busy_percent(&cluster, leader, Duration::from_secs(args.seconds)).await?;
    eprintln!(
        "the leader with {} sessions kept alive: {alive:.1} % of a core",
        args.sessions
    );

    let look = ClusterClient::new(ClientConfig::new(cluster.urls()))?;
    let before = look.status_of(&cluster.urls()[leader]).await?.sessions;
    let unrelated = Crowd::start(cluster.urls(), ttl, UNRELATED).await?;
    let pauses: Vec<_> = clients.iter().map(|client| client.pause_keep_alive()).collect();
    let died = Instant::now();
    let gone = loop {
        let now = cluster.ready().await?;
        let left = look.status_of(&cluster.urls()[now]).await?.sessions;
        if left <= u64::from(UNRELATED) {
            break died.elapsed();
        }
        anyhow::ensure!(died.elapsed() < ttl + GIVE_UP, "{left} sessions are still there");
        sleep(LOOK).await;
    };
    let tally = unrelated.stop().await?;
    drop((pauses, clients));

    let past_ttl_ms = (gone.as_secs_f64() - ttl.as_secs_f64()) * 1e3;
    let p99_ms = tally.acquire_ms(0.99);
    println!("{} sessions, TTL {} ms", args.sessions, args.ttl_ms);
    println!("  alive before they died           {before}");
    println!("  leader without them              {idle:.1} % of a core");
    println!("  leader with them kept alive      {alive:.1} % of a core");
    println!("  all gone, after the TTL          {past_ttl_ms:.0} ms");
    println!(
        "  unrelated acquires meanwhile     p99 {p99_ms:.1} ms, {} cycles",
        tally.cycles
    );
    println!("  unrelated sessions lost          {}", tally.sessions_lost);
    let report = json!({
        "sessions": args.sessions,
        "alive": before,
        "ttl_ms": args.ttl_ms,
        "leader_percent_idle": idle,
        "leader_percent": alive,
        "gone_after_ttl_ms": past_ttl_ms,
        "unrelated_p99_ms": p99_ms,
        "unrelated_cycles": tally.cycles,
        "unrelated_failed": tally.failed,
        "unrelated_sessions_lost": tally.sessions_lost,
    });
    crate::report::write_json(args.cluster.json.as_deref(), &report)
}

/// Processor time of one member over a while, in percent of one core.
async fn busy_percent(cluster: &Cluster, at: usize, over: Duration) -> anyhow::Result<f64> {
    let before = cluster.cpu_of(at)?;
    let begun = Instant::now();
    sleep(over).await;
    let used = cluster.cpu_of(at)? - before;
    Ok(used.us() / begun.elapsed().as_secs_f64() / 1e4)
}
