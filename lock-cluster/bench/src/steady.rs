//! Full load for a long time on a healthy cluster: nobody may call an election, nobody may lose a session.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, interval};

use crate::args::SteadyArgs;
use crate::cluster::{self, Cluster, Kind};
use crate::crowd::Crowd;

/// Between two looks at the terms.
const LOOK: Duration = Duration::from_secs(1);
/// Looks between two lines of progress.
const PROGRESS: u64 = 30;

/// Runs the load and counts what should not happen.
pub(crate) async fn run(args: &SteadyArgs) -> anyhow::Result<()> {
    let program = cluster::lock_node_program(args.cluster.lock_node.as_deref())?;
    let dir = crate::data_dir(&args.cluster)?;
    let mut cluster = Cluster::start(Kind::LockNode, &program, dir.path()).await?;
    cluster.ready().await?;
    let first = term(&cluster).await?;
    let crowd = Crowd::start(cluster.urls(), args.ttl.ttl(), args.clients).await?;
    let begun = Instant::now();
    let whole = Duration::from_secs_f64(args.minutes * 60.0);
    let mut looks = interval(LOOK);
    let mut unanswered = 0_u64;
    let mut last = first;
    for look in 0_u64.. {
        looks.tick().await;
        if begun.elapsed() >= whole {
            break;
        }
        // Under full load a page may come too late; the term it would have told is still there at the next look.
        match term(&cluster).await {
            Ok(term) => last = term,
            Err(_) => unanswered += 1,
        }
        if look % PROGRESS == 0 {
            eprintln!(
                "{:.0} s: term {last}, {:.0} at the start",
                begun.elapsed().as_secs_f64(),
                first
            );
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let tally = crowd.stop().await?;
    cluster.ready().await?;
    let elections = term(&cluster).await? - first;
    let cycles_per_s = tally.cycles as f64 / seconds;

    println!("{} clients for {:.1} minutes", args.clients, seconds / 60.0);
    println!(
        "  cycles           {} ({cycles_per_s:.0} per second), {} failed",
        tally.cycles, tally.failed
    );
    println!(
        "  acquire          p50 {:.1} ms, p99 {:.1} ms",
        tally.acquire_ms(0.5),
        tally.acquire_ms(0.99)
    );
    println!("  false elections  {elections}");
    println!("  sessions lost    {}", tally.sessions_lost);
    let report = json!({
        "clients": args.clients,
        "seconds": seconds,
        "cycles": tally.cycles,
        "failed": tally.failed,
        "acquire_p50_ms": tally.acquire_ms(0.5),
        "acquire_p99_ms": tally.acquire_ms(0.99),
        "false_elections": elections,
        "sessions_lost": tally.sessions_lost,
        "looks_unanswered": unanswered,
    });
    crate::report::write_json(args.cluster.json.as_deref(), &report)
}

/// The highest term that any member is in: it grows by one or more with each election.
async fn term(cluster: &Cluster) -> anyhow::Result<f64> {
    Ok(cluster.each("raft_term").await?.into_iter().fold(0.0, f64::max))
}
