//! The pipes of a client: at most one to each node, opened when it is first needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_pipe::PROTOCOL;
use reqwest::{RequestBuilder, StatusCode, header};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::leaders::NodeUrl;
use crate::pipe::Pipe;
use crate::rest::root_cause;

/// Connecting and the upgrade together.
const OPEN_WITHIN: Duration = Duration::from_millis(1_200);
/// A node that answered the upgrade with something else is asked again after this: it may have been replaced by then.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// How a node is spoken to.
pub(crate) enum Way {
    Pipe(Arc<Pipe>),
    /// It speaks no pipe.
    Http,
}

/// One slot a node.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    slots: Mutex<BTreeMap<NodeUrl, Arc<Slot>>>,
    /// Told by pipes to nodes that owe an answer and show no sign of life.
    silence: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Slot {
    known: Mutex<Known>,
    /// Held while a pipe is being opened, so that a thousand first calls open one.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
enum Known {
    #[default]
    Nothing,
    Pipe(Arc<Pipe>),
    SpeaksNone {
        until: Instant,
    },
}

impl Pipes {
    /// How to speak to `node`; `upgrade` makes the request that asks it for a pipe.
    pub(crate) async fn to(
        &self,
        node: &NodeUrl,
        upgrade: impl FnOnce() -> RequestBuilder,
    ) -> Result<Way, String> {
        let slot = self.slot(node);
        if let Some(way) = slot.way() {
            return Ok(way);
        }
        let _opening = slot.opening.lock().await;
        if let Some(way) = slot.way() {
            return Ok(way);
        }
        let opened = timeout(OPEN_WITHIN, open(upgrade(), &self.silence)).await;
        let opened = opened.unwrap_or_else(|_| Err(format!("no pipe within {OPEN_WITHIN:?}")))?;
        let (known, way) = match opened {
            Opened::Pipe(pipe) => (Known::Pipe(pipe.clone()), Way::Pipe(pipe)),
            Opened::SpeaksNone => {
                let until = Instant::now() + ASK_AGAIN_AFTER;
                (Known::SpeaksNone { until }, Way::Http)
            }
            // It is full, or wants a token: what it says to the call itself tells more.
            Opened::NotNow => (Known::Nothing, Way::Http),
        };
        *slot.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(way)
    }

    /// Completes when, from now on, a node is silent that owes an answer.
    pub(crate) async fn silence(&self) {
        self.silence.notified().await;
    }

    fn slot(&self, node: &NodeUrl) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match slots.get(node) {
            Some(slot) => slot.clone(),
            None => slots.entry(node.clone()).or_default().clone(),
        }
    }
}

impl Slot {
    fn way(&self) -> Option<Way> {
        match &*self.known.lock().unwrap_or_else(PoisonError::into_inner) {
            Known::Pipe(pipe) if pipe.is_open() => Some(Way::Pipe(pipe.clone())),
            Known::SpeaksNone { until } if *until > Instant::now() => Some(Way::Http),
            Known::Nothing | Known::Pipe(_) | Known::SpeaksNone { .. } => None,
        }
    }
}

/// What came of asking a node for a pipe.
enum Opened {
    Pipe(Arc<Pipe>),
    SpeaksNone,
    NotNow,
}

/// Asks for a pipe.
async fn open(request: RequestBuilder, silence: &Arc<Notify>) -> Result<Opened, String> {
    let cause = |error: reqwest::Error| root_cause(&error);
    let request = request
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, PROTOCOL);
    let response = request.send().await.map_err(cause)?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            let connection = response.upgrade().await.map_err(cause)?;
            Ok(Opened::Pipe(Arc::new(Pipe::on(connection, silence.clone()))))
        }
        status if status.is_server_error() => Ok(Opened::NotNow),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
            Ok(Opened::NotNow)
        }
        _ => Ok(Opened::SpeaksNone),
    }
}
