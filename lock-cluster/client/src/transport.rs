//! The way to the cluster: a session's calls over the pipe or as JSON, everything else as JSON.
//!
//! Which node is asked, how often, and what its answer means is [`Asking`]'s; here it is asked, once.
//!
//! A waiting acquire cannot be cut short to see whether its node still lives: hanging up *is* giving up the place
//! in the queue. Instead it watches for somebody else to be proven leader, and moves over then, with the same id. Who
//! finds that out is the keep-alive: within a third of the TTL, or sooner, when a pipe tells of a silent node.

use std::ops::ControlFlow;
use std::time::Duration;

use lock_pipe::{Call, Done, Problem};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::asking::{Answer, Asking, Sent};
use crate::config::{ClientConfig, Protocol};
use crate::error::LockError;
use crate::leaders::{Leaders, NodeUrl};
use crate::pipes::{Pipes, Way};
use crate::rest::{self, Success};

/// A connection is made within this or not at all: a host that is gone must not eat a waiter's patience.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(800);
/// Idle connections kept to each node: as many as waiters may come back at once.
const IDLE_CONNECTIONS_MAX: usize = 1_024;

/// The nodes and the connections to them.
#[derive(Debug)]
pub(crate) struct Transport {
    http: Client,
    leaders: Leaders,
    pipes: Pipes,
    protocol: Protocol,
    token: Option<String>,
}

/// What one try sends, and how long its answer may take.
pub(crate) struct Try {
    pub(crate) call: Call,
    pub(crate) timeout: Duration,
}

/// A request that is no session's call.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Body<'a>,
}

/// What a request carries.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    None,
    Json(&'a Value),
    File(&'a [u8]),
}

impl Transport {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, LockError> {
        let leaders = Leaders::new(&config.urls)?;
        let http = Client::builder()
            .tcp_nodelay(true)
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build()
            .map_err(|error| LockError::invalid("http-client", error.to_string()))?;
        Ok(Self {
            http,
            leaders,
            pipes: Pipes::default(),
            protocol: config.protocol,
            token: config.token.clone(),
        })
    }

    /// Makes a session's call until there is an answer or the deadline has come; `make` is asked for each try.
    pub(crate) async fn call(
        &self,
        deadline: Instant,
        mut make: impl FnMut() -> Try,
    ) -> Result<Answer<Done>, LockError> {
        let mut asking = Asking::new(&self.leaders, deadline);
        loop {
            // Before `make`, which may note when the try began.
            asking.time_for(Duration::MAX)?;
            let Try { call, timeout } = make();
            let timeout = asking.time_for(timeout)?;
            let sent = self
                .within(timeout, &asking.node, self.send(&asking.node, &call))
                .await;
            if let ControlFlow::Break(answer) = asking.hear(sent).await {
                return Ok(answer);
            }
        }
    }

    /// Asks a question until there is an answer or the deadline has come.
    pub(crate) async fn ask(
        &self,
        question: Question<'_>,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Answer<Success>, LockError> {
        let mut asking = Asking::new(&self.leaders, deadline);
        loop {
            let timeout = asking.time_for(timeout)?;
            let Question { method, path, body } = &question;
            let url = format!("{}{path}", asking.node);
            let request = self.request(method.clone(), &url);
            let said = match body {
                Body::None => rest::exchange(request, None),
                Body::Json(json) => rest::exchange(request, Some(json)),
                Body::File(bytes) => rest::exchange(request.body(bytes.to_vec()), None),
            };
            let sent = self.within(timeout, &asking.node, said).await;
            if let ControlFlow::Break(answer) = asking.hear(sent).await {
                return Ok(answer);
            }
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

    pub(crate) fn nodes(&self) -> &[NodeUrl] {
        self.leaders.nodes()
    }

    /// Completes when, from now on, a node shows no sign of life to those who wait for its answers.
    pub(crate) async fn silence(&self) {
        self.pipes.silence().await;
    }

    /// One try at one node: an answer, silence, or news that somebody else leads.
    async fn within<T>(
        &self,
        patience: Duration,
        node: &str,
        said: impl Future<Output = Result<Result<T, Problem>, String>>,
    ) -> Sent<T> {
        let said = tokio::select! {
            said = timeout(patience, said) => said,
            leader = self.leaders.other_than(node) => return Sent::Moved(leader),
        };
        match said {
            Ok(Ok(said)) => Sent::from_said(node, said),
            Ok(Err(why)) => Sent::Unknown(format!("{node}: {why}")),
            Err(_elapsed) => Sent::Unknown(format!("{node} did not answer within {patience:?}")),
        }
    }

    /// The outer error is that there is no answer.
    async fn send(&self, node: &NodeUrl, call: &Call) -> Result<Result<Done, Problem>, String> {
        let way = match self.protocol {
            Protocol::Http => Way::Http,
            Protocol::Auto | Protocol::Pipe => {
                let upgrade = || self.request(Method::GET, &format!("{node}{}", lock_pipe::PATH));
                self.pipes.to(node, upgrade).await?
            }
        };
        match way {
            Way::Pipe(pipe) => pipe.call(call).await,
            Way::Http if self.protocol == Protocol::Pipe => Err("it speaks no pipe".to_owned()),
            Way::Http => {
                rest::call(
                    |method, path| self.request(method, &format!("{node}{path}")),
                    call,
                )
                .await
            }
        }
    }
}
