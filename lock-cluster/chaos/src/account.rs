//! The cluster's own account: the event streams of all nodes, from the first event to the last.
//!
//! Two things are read out of them. Nodes apply the same log, so at the same position all of them must tell the same,
//! whatever happened to each in between. And what they tell has to make sense to the naive book of the checker: first
//! come, first served, nobody forgotten, nothing after its end.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use lock_client::{ClusterClient, EventsFrom, FeedEvent};
use lock_core::{Event, ReleaseReason, SessionEnd, TtlMs, WaitEnd};
use lock_history::book::Book;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use uuid::Uuid;

use crate::cluster::Cluster;

/// How long a node may take to tell everything.
const TELL_WITHIN: Duration = Duration::from_secs(20);

/// Events by position: log index, and number within the index.
type Story = BTreeMap<(u64, u64), FeedEvent>;

/// What is wrong with what the nodes tell, from the beginning until the session `last` was closed.
///
/// # Errors
/// If no node can tell all of it.
pub async fn check(cluster: &Cluster, last: Uuid) -> anyhow::Result<Vec<String>> {
    let mut stories = Vec::new();
    for at in cluster.all() {
        let told = timeout(TELL_WITHIN, listen(cluster, at, last)).await;
        match told.unwrap_or_else(|_| bail!("it did not come to an end")) {
            Ok(story) => stories.push((at + 1, story)),
            Err(error) => eprintln!("node {} cannot tell everything: {error:#}", at + 1),
        }
    }
    let mut stories = stories.into_iter();
    let (first, story) = stories.next().context("no node can tell everything")?;
    let mut violations = Vec::new();
    for (other, told) in stories {
        violations.extend(differ(first, &story, other, &told));
    }
    violations.extend(read(&story)?);
    Ok(violations)
}

/// A node's story. It is compared only with that of another node that can tell all of it, too.
async fn listen(cluster: &Cluster, at: usize, last: Uuid) -> anyhow::Result<Story> {
    let mut config = cluster.client_config();
    config.urls = vec![cluster.url(at)];
    let mut feed = ClusterClient::new(config)?.events(EventsFrom::Index(0)).await?;
    let last = last.to_string();
    let mut story = Story::new();
    loop {
        let event = feed.next().await?.context("the stream ended")?;
        if event.event == "compacted" {
            bail!("the beginning is gone");
        }
        let position = event.id.as_deref().and_then(position);
        let position = position.with_context(|| format!("an event without a position: {event:?}"))?;
        let ends = event.event == "session-closed" && event.data["session_id"] == last.as_str();
        story.insert(position, event);
        if ends {
            return Ok(story);
        }
    }
}

fn position(id: &str) -> Option<(u64, u64)> {
    let (index, number) = id.split_once('.')?;
    Some((index.parse().ok()?, number.parse().ok()?))
}

/// The first position at which two nodes tell something different.
fn differ(one: usize, first: &Story, two: usize, second: &Story) -> Option<String> {
    let positions = first
        .keys()
        .chain(second.keys())
        .collect::<std::collections::BTreeSet<_>>();
    positions.into_iter().find_map(|at| {
        let (told, other) = (first.get(at), second.get(at));
        (told != other)
            .then(|| format!("agreement: at {at:?} node {one} tells {told:?}, node {two} {other:?}"))
    })
}

/// Reads the story into the book.
fn read(story: &Story) -> anyhow::Result<Vec<String>> {
    let mut book = Book::default();
    let mut violations = Vec::new();
    let mut entry = None;
    for ((index, _), told) in story {
        if entry.is_some_and(|entry| entry != index)
            && let Err(what) = book.close_entry()
        {
            violations.push(format!("book: before entry {index}: {what}"));
        }
        entry = Some(index);
        let Some(event) = understand(told).with_context(|| format!("an event at {index}: {told:?}"))? else {
            continue;
        };
        if let Err(what) = book.take(&event) {
            violations.push(format!("book: entry {index}: {what}"));
        }
    }
    if let Err(what) = book.close_entry() {
        violations.push(format!("book: at the end: {what}"));
    }
    Ok(violations)
}

/// The event as the state machine told it. `None` for what is none of its events.
fn understand(told: &FeedEvent) -> anyhow::Result<Option<Event>> {
    let data = &told.data;
    let session_id = || field(data, "session_id");
    let acquire_id = || field(data, "acquire_id");
    let fencing_token = || field(data, "fencing_token");
    let names = || field(data, "names");
    let reason: String = field(data, "reason").unwrap_or_default();
    let event = match told.event.as_str() {
        "leader-changed" => return Ok(None),
        "session-opened" => Event::SessionOpened {
            session_id: session_id()?,
            ttl: TtlMs::new(field(data, "ttl_ms")?)?,
            label: field(data, "label")?,
        },
        "session-closed" => Event::SessionClosed {
            session_id: session_id()?,
            reason: match reason.as_str() {
                "expired" => SessionEnd::Expired,
                _ => SessionEnd::Closed,
            },
        },
        "queued" => Event::Queued {
            session_id: session_id()?,
            acquire_id: acquire_id()?,
            names: names()?,
        },
        "granted" => Event::Granted {
            session_id: session_id()?,
            acquire_id: acquire_id()?,
            fencing_token: fencing_token()?,
            names: names()?,
        },
        "released" | "expired" | "broken" => Event::Released {
            session_id: session_id()?,
            acquire_id: acquire_id()?,
            fencing_token: fencing_token()?,
            names: names()?,
            reason: match reason.as_str() {
                "broken" => ReleaseReason::Broken,
                "abandoned" => ReleaseReason::Abandoned,
                "session-closed" => ReleaseReason::SessionClosed,
                "session-expired" => ReleaseReason::SessionExpired,
                _ => ReleaseReason::Released,
            },
        },
        "wait-ended" => Event::WaitEnded {
            session_id: session_id()?,
            acquire_id: acquire_id()?,
            names: names()?,
            reason: match reason.as_str() {
                "timed-out" => WaitEnd::TimedOut,
                "abandoned" => WaitEnd::Abandoned,
                "session-closed" => WaitEnd::SessionClosed,
                "session-expired" => WaitEnd::SessionExpired,
                _ => WaitEnd::Released,
            },
        },
        other => bail!("an event of an unknown kind: {other}"),
    };
    Ok(Some(event))
}

fn field<T: DeserializeOwned>(data: &Value, name: &str) -> anyhow::Result<T> {
    T::deserialize(&data[name]).with_context(|| format!("its {name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ana holds the gate under token 7, and gives it back.
    fn story() -> Story {
        let ana = "00000000-0000-0000-0000-00000000000a";
        let gate = json!({ "session_id": ana, "acquire_id": 1, "fencing_token": 7, "names": ["gate"], "reason": "released" });
        let told = [
            (
                "session-opened",
                json!({ "session_id": ana, "ttl_ms": 1_000, "label": "" }),
            ),
            ("leader-changed", json!({ "term": 1, "leader": 1 })),
            ("granted", gate.clone()),
            ("released", gate),
            ("session-closed", json!({ "session_id": ana, "reason": "closed" })),
        ];
        let event = |(index, (event, data)): (u64, (&str, Value))| {
            let (id, event) = (Some(format!("{index}.0")), event.to_owned());
            ((index, 0), FeedEvent { id, event, data })
        };
        (1..).zip(told).map(event).collect()
    }

    #[test]
    fn a_story_that_makes_sense_is_believed() {
        assert_eq!(read(&story()).unwrap(), Vec::<String>::new());
        assert_eq!(differ(1, &story(), 2, &story()), None);
    }

    #[test]
    fn nodes_that_tell_different_things_are_found() {
        let mut other = story();
        other.get_mut(&(3, 0)).unwrap().data["fencing_token"] = 8.into();
        assert!(differ(1, &story(), 2, &other).unwrap().contains("at (3, 0)"));
        let mut shorter = story();
        shorter.remove(&(4, 0));
        assert!(differ(1, &story(), 2, &shorter).unwrap().contains("at (4, 0)"));
        assert!(differ(1, &shorter, 2, &story()).unwrap().contains("at (4, 0)"));
    }

    #[test]
    fn a_story_that_makes_no_sense_is_found() {
        let mut forgetful = story();
        forgetful.remove(&(4, 0));
        assert!(read(&forgetful).unwrap()[0].contains("is still there"));
        let mut unheard_of = story();
        unheard_of.get_mut(&(4, 0)).unwrap().event = "lent".to_owned();
        assert!(read(&unheard_of).is_err());
    }
}
