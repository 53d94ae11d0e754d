//! `watch`: the cluster's events, one a line and none twice, across the loss of a node.

use std::process::ExitCode;
use std::time::Duration;

use lock_client::{ClusterClient, EventFeed, EventsFrom, FeedEvent, LockError};

use crate::out::say_line;
use crate::table::printable;

/// Between the end of one stream and the next connection.
const RECONNECT: Duration = Duration::from_millis(500);

/// Ends only when it cannot begin, is refused, or nobody reads what it prints.
pub(crate) async fn run(cluster: &ClusterClient, from: Option<u64>, json: bool) -> anyhow::Result<ExitCode> {
    let mut feed = cluster
        .events(from.map_or(EventsFrom::Now, EventsFrom::Index))
        .await?;
    let mut seen = None;
    loop {
        if let Err(error) = follow(&mut feed, &mut seen, json).await? {
            eprintln!("lockctl: {error}; connecting again");
        }
        feed = loop {
            tokio::time::sleep(RECONNECT).await;
            let from = match (&seen, from) {
                (Some(id), _) => EventsFrom::Behind(id),
                (None, Some(index)) => EventsFrom::Index(index),
                (None, None) => EventsFrom::Now,
            };
            match cluster.events(from).await {
                Ok(feed) => break feed,
                Err(error) if error.retryable() => {}
                Err(error) => return Err(error.into()),
            }
        };
    }
}

/// Prints until the stream ends, in whatever way; `seen` is the last event's id.
async fn follow(
    feed: &mut EventFeed,
    seen: &mut Option<String>,
    json: bool,
) -> anyhow::Result<Result<(), LockError>> {
    loop {
        match feed.next().await {
            Ok(Some(event)) => {
                print(&event, json)?;
                *seen = event.id.or(seen.take());
            }
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

fn print(event: &FeedEvent, json: bool) -> anyhow::Result<()> {
    if json {
        say_line(serde_json::to_string(event)?)?;
    } else {
        let position = event.id.as_deref().unwrap_or("-");
        let data = printable(&event.data.to_string());
        say_line(format_args!("{position:>10}  {:<16}  {data}", event.event))?;
    }
    Ok(())
}
