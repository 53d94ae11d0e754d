//! Asking the cluster one thing until it is answered: which node, how long, what an answer means.
//!
//! Every request is safe to repeat: the client chooses all ids, and the cluster answers the same again. So the
//! rule is simple. An answer that *says* what happened ends the call. Anything else (a timeout, a reset, a 5xx,
//! a node that does not lead, a cluster without a leader) leaves it unknown, and the same request goes to another
//! node, until the caller's deadline.
//!
//! Two kinds of knowledge about the leader are kept apart. A node that has *answered* a command leads, and is
//! asked first from then on. The node a 421 points to is only the next one to try: a lagging follower still
//! names the leader of yesterday, and must not pull a thousand waiters off the one of today.
//!
//! A waiting acquire cannot be cut short to see whether its node still lives: hanging up *is* giving up the place
//! in the queue. Instead it watches for somebody else to be proven leader (the keep-alives find out within a
//! third of the TTL), and moves over then, with the same id.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::error::LockError;
use crate::wire::Problem;

/// A connection is made within this or not at all: a host that is gone must not eat a waiter's patience.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(800);
/// Idle connections kept to each node: as many as waiters may come back at once.
const IDLE_CONNECTIONS_MAX: usize = 1_024;
/// Consecutive 421s followed without a pause; more of them means that nodes disagree about who leads.
const HOPS_WITHOUT_PAUSE: u32 = 2;

/// The nodes, and which of them has been proven to lead.
#[derive(Debug)]
pub(crate) struct Transport {
    http: Client,
    nodes: Vec<String>,
    leader: watch::Sender<Option<String>>,
    token: Option<String>,
}

/// One request, as often as it takes.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// The whole call's end.
    pub(crate) deadline: Instant,
}

/// What one try sends: its body, and how long its answer may take.
pub(crate) struct Try {
    pub(crate) body: Option<Value>,
    pub(crate) timeout: Duration,
}

/// An answer that says what happened.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// An earlier try of the same call went without an answer: it may have been carried out, and may still be.
    pub(crate) in_doubt: bool,
}

/// What one try brought.
enum Sent {
    Answer(Answer),
    /// This node does not lead; perhaps it knows who does.
    Elsewhere(Option<String>),
    /// Somebody else was proven leader before this node answered.
    Moved(String),
    Unknown(String),
}

impl Transport {
    pub(crate) fn new(urls: &[String], token: Option<String>) -> Result<Self, LockError> {
        let nodes: Vec<String> = urls
            .iter()
            .map(|url| url.trim_end_matches('/').to_owned())
            .collect();
        if nodes.is_empty() {
            return Err(LockError::invalid(
                "no-nodes",
                "a lock client needs the URL of at least one node",
            ));
        }
        if let Some(bad) = nodes.iter().find(|url| reqwest::Url::parse(url).is_err()) {
            return Err(LockError::invalid("bad-url", format!("{bad} is no URL")));
        }
        let http = Client::builder()
            .tcp_nodelay(true)
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build()
            .map_err(|error| LockError::invalid("http-client", error.to_string()))?;
        Ok(Self {
            http,
            nodes,
            leader: watch::Sender::new(None),
            token,
        })
    }

    /// Asks until there is an answer or the deadline has come; `make` gives each try its body and timeout.
    pub(crate) async fn ask(
        &self,
        call: Call<'_>,
        mut make: impl FnMut() -> Try,
    ) -> Result<Answer, LockError> {
        let mut node = self.first_node();
        let mut backoff = Backoff::new();
        let mut hops = 0;
        let mut in_doubt = false;
        let mut last = String::from("not asked yet");
        loop {
            let remaining = call.deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(LockError::Unavailable { detail: last });
            }
            let mut attempt = make();
            attempt.timeout = attempt.timeout.min(remaining);
            match self.send(&node, &call, attempt).await {
                Sent::Answer(answer) => {
                    self.learn_from(&node, answer.status);
                    return Ok(Answer { in_doubt, ..answer });
                }
                Sent::Moved(leader) => {
                    in_doubt = true;
                    node = leader;
                    continue;
                }
                Sent::Elsewhere(Some(leader)) => {
                    last = format!("{node} does not lead");
                    node = leader;
                    hops += 1;
                    if hops <= HOPS_WITHOUT_PAUSE {
                        continue;
                    }
                }
                Sent::Elsewhere(None) => {
                    last = format!("{node} knows no leader");
                    node = self.node_after(&node);
                }
                Sent::Unknown(why) => {
                    in_doubt = true;
                    last = why;
                    node = self.node_after(&node);
                }
            }
            let remaining = call.deadline.saturating_duration_since(Instant::now());
            sleep(backoff.pause().min(remaining)).await;
        }
    }

    /// A request that is not repeated: streams, and calls to one particular node.
    pub(crate) fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    async fn send(&self, node: &str, call: &Call<'_>, attempt: Try) -> Sent {
        let mut request = self.request(call.method.clone(), &format!("{node}{}", call.path));
        if let Some(body) = &attempt.body {
            request = request.json(body);
        }
        let exchange = async {
            let response = request.send().await?;
            let status = response.status();
            let body = response.bytes().await?;
            Ok::<_, reqwest::Error>(Answer {
                status,
                body: body.into(),
                in_doubt: false,
            })
        };
        let answer = tokio::select! {
            answer = timeout(attempt.timeout, exchange) => answer,
            leader = self.other_leader_than(node) => return Sent::Moved(leader),
        };
        match answer {
            Ok(Ok(answer)) => classify(node, answer),
            Ok(Err(error)) => Sent::Unknown(format!("{node}: {}", root_cause(&error))),
            Err(_elapsed) => Sent::Unknown(format!("{node} did not answer within {:?}", attempt.timeout)),
        }
    }

    /// The proven leader, or any node: a random one, so that a thousand clients do not all begin with the first.
    fn first_node(&self) -> String {
        let proven = self.leader.borrow().clone();
        proven.unwrap_or_else(|| self.nodes[rand::random_range(0..self.nodes.len())].clone())
    }

    fn node_after(&self, node: &str) -> String {
        let here = self.nodes.iter().position(|known| known == node);
        let next = here.map_or_else(
            || rand::random_range(0..self.nodes.len()),
            |here| (here + 1) % self.nodes.len(),
        );
        self.nodes[next].clone()
    }

    fn learn_from(&self, node: &str, status: StatusCode) {
        // A refused body or a missing token says nothing about who leads: any node answers those.
        let proves = status.is_success()
            || matches!(
                status,
                StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::GONE
            )
            || status == StatusCode::SERVICE_UNAVAILABLE;
        if proves {
            self.leader.send_if_modified(|leader| {
                let changed = leader.as_deref() != Some(node);
                if changed {
                    *leader = Some(node.to_owned());
                }
                changed
            });
        }
    }

    /// Completes when, from now on, somebody else than `node` is proven leader. Who was proven before does not
    /// count: this node is asked because that one did not answer.
    async fn other_leader_than(&self, node: &str) -> String {
        let mut leader = self.leader.subscribe();
        loop {
            if leader.changed().await.is_err() {
                // The sender lives as long as `self`.
                return std::future::pending().await;
            }
            match leader.borrow_and_update().as_deref() {
                Some(other) if other != node => return other.to_owned(),
                _ => {}
            }
        }
    }
}

impl Answer {
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, LockError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| LockError::unavailable(format!("an answer could not be read: {error}")))
    }

    pub(crate) fn problem(&self) -> Problem {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The error of an answer that is none of those the caller expects.
    pub(crate) fn refusal(&self) -> LockError {
        let problem = self.problem();
        match self.status {
            StatusCode::GONE => LockError::SessionLost,
            StatusCode::NOT_FOUND => LockError::NotFound {
                detail: problem.text(),
            },
            // A bound of the cluster was met: too many of something right now.
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => LockError::Unavailable {
                detail: problem.text(),
            },
            status if problem.slug().is_empty() => LockError::invalid("unexpected", status.to_string()),
            _ => LockError::Invalid {
                slug: problem.slug().to_owned(),
                detail: problem.text(),
            },
        }
    }
}

fn classify(node: &str, answer: Answer) -> Sent {
    match answer.status {
        StatusCode::MISDIRECTED_REQUEST => {
            Sent::Elsewhere(answer.problem().leader.map(|leader| leader.client_url))
        }
        StatusCode::SERVICE_UNAVAILABLE if answer.problem().slug() == "lock-wait-timeout" => {
            Sent::Answer(answer)
        }
        StatusCode::SERVICE_UNAVAILABLE if answer.problem().slug() == "no-leader" => Sent::Elsewhere(None),
        status if status.is_server_error() => {
            Sent::Unknown(format!("{node} answered {status}: {}", answer.problem().text()))
        }
        _ => Sent::Answer(answer),
    }
}

/// reqwest's own message repeats the URL; the cause at the end of the chain says what went wrong.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
