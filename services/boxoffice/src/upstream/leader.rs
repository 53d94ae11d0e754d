//! The lock cluster: one node leads, the others say who.
//!
//! The front door remembers the leader, follows a 421, and asks around when the leader is gone. Every command
//! names its session and attempt, so a copy is recognised and asking again is safe (membership changes are the
//! exception; see [`repeatable`](crate::domain::route::repeatable)).
//!
//! Where the cluster wants a token of its clients, the front door shows it with its own questions only. It lends it to
//! nobody: a request that is passed on carries what its sender has, or anybody who reaches the front door were a client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Context as _;
use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use service_kit::{Problem, Secret};

use super::instance::{HttpClient, Instance, NoAnswer};
use super::parcel::Parcel;
use super::{nobody_there, unknown_outcome};

/// The cluster's name in answers.
const NAME: &str = "lock-cluster";
/// Longest 421 that is read.
const PROBLEM_LEN_MAX: usize = 64 * 1024;

/// The lock cluster's nodes.
#[derive(Clone)]
pub(crate) struct Nodes {
    nodes: Arc<[Arc<Instance>]>,
    /// The node that answered last.
    leader: Arc<AtomicUsize>,
    /// What the front door shows with its own questions.
    authorization: Option<HeaderValue>,
    answer_within: Duration,
}

/// What a node says that cannot do it itself.
#[derive(Deserialize)]
struct Elsewhere {
    r#type: String,
    leader: Option<Leader>,
}

#[derive(Deserialize)]
struct Leader {
    client_url: String,
}

impl Nodes {
    /// The cluster with nodes at these URLs.
    pub(crate) fn new(
        client: &HttpClient,
        urls: &[String],
        token: Option<&Secret>,
        answer_within: Duration,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(!urls.is_empty(), "no URL is configured for the lock cluster");
        let nodes: anyhow::Result<Vec<_>> = urls
            .iter()
            .map(|url| Ok(Arc::new(Instance::new(client, url)?)))
            .collect();
        Ok(Self {
            nodes: nodes?.into(),
            leader: Arc::default(),
            authorization: token.map(authorization).transpose()?,
            answer_within,
        })
    }

    /// The nodes.
    pub(crate) fn nodes(&self) -> &[Arc<Instance>] {
        &self.nodes
    }

    /// A question of the front door's own.
    pub(crate) fn question(&self, path_and_query: PathAndQuery) -> Parcel {
        let mut question = Parcel::get(path_and_query);
        if let Some(authorization) = &self.authorization {
            question.headers.insert(AUTHORIZATION, authorization.clone());
        }
        question
    }

    /// Sends a parcel to the leader, wherever that is by now. Two rounds over all nodes, then we say what we
    /// were told last: an election takes longer than a caller should wait without knowing.
    pub(crate) async fn send(&self, parcel: Parcel, repeatable: bool) -> Result<Response, Problem> {
        let mut at = self.leader.load(Relaxed) % self.nodes.len();
        let mut doubt = None;
        let mut told = None;
        let mut reason = String::new();
        for _ in 0..2 * self.nodes.len() {
            let node = &self.nodes[at];
            let next = (at + 1) % self.nodes.len();
            at = match node.send(parcel.clone(), self.answer_within).await {
                Ok(response) => match self.elsewhere(response).await {
                    Ok(response) => {
                        self.leader.store(at, Relaxed);
                        return Ok(response);
                    }
                    Err((response, leader)) => {
                        told = Some(response);
                        leader.filter(|&leader| leader != at).unwrap_or(next)
                    }
                },
                Err(NoAnswer::NotSent(why)) => {
                    reason = why;
                    next
                }
                Err(NoAnswer::Broken(why)) if repeatable => {
                    doubt = Some(why);
                    next
                }
                Err(NoAnswer::Broken(why)) => return Err(unknown_outcome(NAME, &why)),
                Err(NoAnswer::Late) => return Err(unknown_outcome(NAME, "no answer in time")),
            };
        }
        match (doubt, told) {
            (Some(why), _) => Err(unknown_outcome(NAME, &why)),
            // A 421 names a node that the caller need not reach: from here, that is "no leader".
            (None, Some(response)) if response.status() == StatusCode::MISDIRECTED_REQUEST => {
                Err(Problem::busy("no-leader", super::LATER).detail("the lock cluster is electing a leader"))
            }
            (None, Some(response)) => Ok(response),
            (None, None) => Err(nobody_there(NAME, &reason)),
        }
    }

    /// An answer as it is; or, where another node can do better, the answer and perhaps which node that is.
    ///
    /// Of a node's 503s only "no leader" (it may be alone on the wrong side of a cut) and "shutting down" are
    /// of that kind: a wait that timed out is final.
    async fn elsewhere(&self, response: Response) -> Result<Response, (Response, Option<usize>)> {
        let status = response.status();
        if status != StatusCode::MISDIRECTED_REQUEST && status != StatusCode::SERVICE_UNAVAILABLE {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, PROBLEM_LEN_MAX).await.unwrap_or_default();
        let problem = serde_json::from_slice::<Elsewhere>(&bytes).ok();
        let response = Response::from_parts(parts, Body::from(bytes));
        let Some(problem) = problem else {
            return Ok(response);
        };
        match problem.r#type.rsplit('/').next() {
            Some("not-leader") => {
                let leader = problem.leader.and_then(|leader| {
                    let url = leader.client_url.trim_end_matches('/').to_owned();
                    self.nodes.iter().position(|node| node.url == url)
                });
                Err((response, leader))
            }
            Some("no-leader" | "shutting-down") => Err((response, None)),
            _ => Ok(response),
        }
    }
}

/// The header that shows a token. Marked, so that nobody who prints headers prints it.
fn authorization(token: &Secret) -> anyhow::Result<HeaderValue> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
    let mut value =
        value.context("the lock cluster's token cannot be sent: it has unprintable characters")?;
    value.set_sensitive(true);
    Ok(value)
}
