//! `GET /v1/stream`: what the page shows, as it changes.
//!
//! | event | data |
//! |---|---|
//! | `topology` | instances and lock cluster, as in `/v1/topology` |
//! | `locks` | the locks worth showing: holder, the next waiters, how many there are |
//! | `stock` | the watched event (`?event_id=`), as in `/v1/events/{id}` |
//! | `round` | the newest round with its progress |
//!
//! Every stream looks four times a second and sends what has changed. That is polling, one hop behind the
//! page: a screen shows no more frames than that, and a burst of a thousand purchases costs a watcher four
//! messages, not a thousand.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::StreamExt as _;
use futures::stream::unfold;
use http::uri::PathAndQuery;
use serde::{Deserialize, Serialize};
use service_kit::{ApiQuery, Problem};
use ticketing_types::EventId;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};
use utoipa::IntoParams;

use super::AppState;
use crate::upstream::parcel::Parcel;
use crate::workers::prober::LockLine;

/// How often a stream looks for changes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long the stock may take.
const STOCK_WITHIN: Duration = Duration::from_secs(2);
/// Longest answer that is read.
const STOCK_LEN_MAX: usize = 64 * 1024;

/// What to watch.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Watch {
    /// The event whose stock is sent; none: no stock.
    event_id: Option<EventId>,
}

/// Watch the suite: server-sent events `topology`, `locks`, `stock` and `round`, each when it has changed.
#[utoipa::path(
    get, path = "/v1/stream", tag = "boxoffice", params(Watch),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 503, description = "`too-many-streams`"),
    )
)]
pub(super) async fn stream(
    State(state): State<AppState>,
    ApiQuery(Watch { event_id }): ApiQuery<Watch>,
) -> Result<impl IntoResponse, Problem> {
    let permit = state.streams.clone().try_acquire_owned().map_err(|_| {
        Problem::busy("too-many-streams", Duration::from_secs(5)).detail("too many pages are watching")
    })?;
    let shutdown = state.shutdown.clone();
    let watcher = Watcher::new(state, event_id, permit);
    let events = unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    // A stream has no end of its own; without this one it would hold up the shutdown.
    let events = events.take_until(shutdown.cancelled_owned());
    let headers = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    Ok((headers, Sse::new(events).keep_alive(KeepAlive::default())))
}

struct Watcher {
    state: AppState,
    /// Held so that the prober knows that somebody looks.
    locks: watch::Receiver<Vec<LockLine>>,
    stock_path: Option<PathAndQuery>,
    tick: Interval,
    sent: HashMap<&'static str, String>,
    ready: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
}

impl Watcher {
    fn new(state: AppState, event_id: Option<EventId>, permit: OwnedSemaphorePermit) -> Self {
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            locks: state.locks.subscribe(),
            stock_path: event_id.and_then(|id| PathAndQuery::try_from(format!("/v1/events/{id}")).ok()),
            state,
            tick,
            sent: HashMap::new(),
            ready: VecDeque::new(),
            _permit: permit,
        }
    }

    async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            self.tick.tick().await;
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let topology = self.state.topology.borrow().clone();
        self.offer("topology", &topology);
        let locks = self.locks.borrow_and_update().clone();
        self.offer("locks", &locks);
        if let Some(round) = self.state.rounds.latest() {
            self.offer("round", &round);
        }
        if let Some(stock) = self.stock().await {
            self.offer("stock", &stock);
        }
    }

    async fn stock(&self) -> Option<serde_json::Value> {
        let ask = self
            .state
            .upstreams
            .inventory
            .send(Parcel::get(self.stock_path.clone()?), true);
        let response = tokio::time::timeout(STOCK_WITHIN, ask).await.ok()?.ok()?;
        if !response.status().is_success() {
            return None;
        }
        serde_json::from_slice(&to_bytes(response.into_body(), STOCK_LEN_MAX).await.ok()?).ok()
    }

    /// Queues the value unless it is the one that was sent last.
    fn offer(&mut self, name: &'static str, value: &impl Serialize) {
        let text = serde_json::to_string(value).expect("plain data with string keys");
        if self.sent.get(name) != Some(&text) {
            self.ready.push_back(Event::default().event(name).data(&text));
            self.sent.insert(name, text);
        }
    }
}
