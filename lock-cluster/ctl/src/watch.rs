//! `watch`: the cluster's events, one a line, across the loss of a node.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use lock_client::{ClusterClient, FeedEvent};

use crate::table::printable;

/// Between the end of one stream and the next connection.
const RECONNECT: Duration = Duration::from_millis(500);

pub(crate) async fn run(cluster: &ClusterClient, from: Option<u64>, json: bool) -> anyhow::Result<ExitCode> {
    let mut from = from;
    loop {
        let mut feed = cluster.events(from).await?;
        loop {
            match feed.next().await {
                Ok(Some(event)) => {
                    // Behind the last one that was seen whole: an index may bring several events.
                    from = event.data["index"].as_u64().map(|index| index + 1).or(from);
                    print(&event, json)?;
                }
                Ok(None) => break,
                Err(error) => {
                    eprintln!("lockctl: {error}; connecting again");
                    break;
                }
            }
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

fn print(event: &FeedEvent, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(event)?)?;
    } else {
        let position = event.id.as_deref().unwrap_or("-");
        writeln!(
            out,
            "{position:>10}  {:<16}  {}",
            event.event,
            printable(&event.data.to_string())
        )?;
    }
    // Whoever reads through a pipe wants it now.
    out.flush()?;
    Ok(())
}
