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
            .finish()
    }
}
