//! What a client has to be told.

use std::fmt;
use std::time::Duration;

/// How to reach the cluster, and how this process appears in it.
#[derive(Clone)]
pub struct ClientConfig {
    /// Base URLs of the nodes' client ports, for example `http://127.0.0.1:8501`; one is enough, all are better.
    pub urls: Vec<String>,
    /// How long the session outlives this process (0.5 s to 300 s); kept alive every third of it.
    pub ttl: Duration,
    /// Who holds, for people who look at the cluster: at most 128 bytes.
    pub label: String,
    /// Bearer token, where the cluster asks for one.
    pub token: Option<String>,
    /// How sessions and locks are asked for.
    pub protocol: Protocol,
}

/// How a session's calls travel. Everything else (looking, breaking, members, events) is always JSON over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The pipe where a node speaks it, JSON over HTTP where it does not.
    #[default]
    Auto,
    /// The pipe and nothing else: a node that does not speak it counts as one that does not answer.
    Pipe,
    /// JSON over HTTP, as anybody could with `curl`.
    Http,
}

impl ClientConfig {
    /// Time to live of a session unless told otherwise.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(5);

    /// A client of the cluster at `urls`, with the default TTL and no label.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            ttl: Self::DEFAULT_TTL,
            label: String::new(),
            token: None,
            protocol: Protocol::default(),
        }
    }
}

// Written by hand: a token must not reach a log through `{:?}`.
impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("urls", &self.urls)
            .field("ttl", &self.ttl)
            .field("label", &self.label)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("protocol", &self.protocol)
            .finish()
    }
}
