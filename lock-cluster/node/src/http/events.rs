//! `GET /v1/events`: what happens, in log order, none twice.
//!
//! The stream is this node's own: it tells what was applied *here*, so a follower serves it as well as the leader,
//! a moment later. Where the history asked for is gone, it says `compacted` and gives the state instead: the locks
//! as they stand and the index they stand at; the events go on behind it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::Stream;
use lock_core::LockState;
use serde::Deserialize;
use serde_json::json;
use service_kit::{ApiQuery, Problem};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::IntoParams;

use super::Api;
use super::body::LockBody;
use super::feed::{Position, describe};
use crate::service::{Compacted, EventFeed, FeedItem};

/// How often a silent stream shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Events between the feed and a reader's connection; a reader that is slower than that holds its own stream up.
const BUFFERED_MAX: usize = 256;
/// Locks in the state that a `compacted` event carries.
const LOCKS_MAX: usize = 10_000;
/// Waiters of each of them; how many there are is told beside. Applying the log waits while the state is looked at.
const WAITERS_MAX: usize = 10;

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Log index of the first event wanted; from now on unless given.
    from: Option<u64>,
}

/// Watch events
///
/// Server-sent events: `session-opened`, `session-closed`, `queued`, `granted`, `released`, `expired`, `broken`,
/// `wait-ended`, `leader-changed`, `compacted`. A reader that comes back with `Last-Event-ID` goes on behind it.
#[utoipa::path(
    get, path = "/v1/events", tag = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<String>, Header, description = "the last event that was read")),
    responses(
        (status = 200, content_type = "text/event-stream", body = String), (status = 400, description = "invalid-request"),
        (status = 503, description = "too-many-streams, overloaded"),
    )
)]
pub(crate) async fn stream(
    State(api): State<Api>,
    ApiQuery(EventsQuery { from }): ApiQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let seen = last_event_id(&headers)?;
    let lasting = api.lasting.stream()?;
    let (events, receiver) = mpsc::channel(BUFFERED_MAX);
    // Ends with the reader (its receiver is dropped, also while nothing happens that could be sent to it) or with the
    // node.
    tokio::spawn(async move {
        let _lasting = lasting;
        let reader = Reader {
            api: api.clone(),
            seen,
            events: events.clone(),
        };
        tokio::select! {
            () = reader.run(from) => {}
            () = events.closed() => {}
            () = api.closing.cancelled() => {}
        }
    });
    Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<Position>, Problem> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let position = value.to_str().ok().and_then(|text| text.parse().ok());
    position
        .map(Some)
        .ok_or_else(|| Problem::invalid("/Last-Event-ID", "is no position of this feed"))
}

/// One reader of the feed.
struct Reader {
    api: Api,
    seen: Option<Position>,
    events: mpsc::Sender<Result<Event, Infallible>>,
}

/// The reader has gone.
struct Gone;

impl Reader {
    async fn run(&self, from: Option<u64>) {
        let service = &self.api.service;
        let from = self.seen.map(|seen| seen.index).or(from);
        let mut feed = match from {
            Some(from) => service.events_from(from).await,
            None => Ok(service.events()),
        };
        loop {
            let Ok(Compacted { .. }) = (match feed {
                Ok(feed) => self.follow(feed).await,
                Err(compacted) => Ok(compacted),
            }) else {
                return;
            };
            let Ok(resume_from) = self.tell_state().await else {
                return;
            };
            feed = service.events_from(resume_from).await;
        }
    }

    /// Passes events on until the reader goes, or has fallen so far behind that the history is gone.
    async fn follow(&self, mut feed: EventFeed) -> Result<Compacted, Gone> {
        loop {
            match feed.next().await {
                Ok(item) => self.pass_on(&item).await?,
                Err(compacted) => return Ok(compacted),
            }
        }
    }

    async fn pass_on(&self, item: &FeedItem) -> Result<(), Gone> {
        for (number, event) in item.events.iter().enumerate() {
            let position = Position {
                index: item.index,
                number,
            };
            if self.seen.is_some_and(|seen| position <= seen) {
                continue;
            }
            let (name, mut data) = describe(event);
            data["index"] = item.index.into();
            self.send(
                Event::default()
                    .id(position.to_string())
                    .event(name)
                    .data(data.to_string()),
            )
            .await?;
        }
        Ok(())
    }

    /// Tells that the history is gone, and the state instead; answers the index from which the events go on.
    async fn tell_state(&self) -> Result<u64, Gone> {
        let look = |state: &LockState| state.locks_in_brief("", LOCKS_MAX, WAITERS_MAX);
        let (resume_from, locks) = self.api.service.look(look);
        let locks: Vec<LockBody> = locks.into_iter().map(LockBody::from).collect();
        let data = json!({ "resume_from": resume_from, "locks": locks });
        // The position before the first event to come: whoever comes back with it goes on there.
        let position = Position {
            index: resume_from.saturating_sub(1),
            number: usize::MAX,
        };
        self.send(
            Event::default()
                .id(position.to_string())
                .event("compacted")
                .data(data.to_string()),
        )
        .await?;
        Ok(resume_from)
    }

    async fn send(&self, event: Event) -> Result<(), Gone> {
        self.events.send(Ok(event)).await.map_err(|_| Gone)
    }
}
