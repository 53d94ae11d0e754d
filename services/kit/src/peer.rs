//! [`Peer`]: calls from one service of the suite to another.
//!
//! A call over a network has three outcomes, and confusing two of them loses money: it was **done**, it was
//! **refused** (definitely not done), or it is **unknown** (a timeout, a reset, a 5xx: perhaps done, perhaps
//! not). An unknown outcome is never treated as a failure; it is asked about again *with the same request*,
//! whose id the caller chose, so that the peer can recognise it. [`Call::until_known`] does that.
//!
//! "Nothing happened, come back later" is not unknown: a 503 with `Retry-After` is a promise of this suite
//! that nothing was done ([`CallError::Busy`]), unless its slug ends in `-unknown`, and a refused connection
//! never carried the request ([`CallError::Unreachable`]). But once one attempt of a call went unknown, only a real answer settles it:
//! a later 503 says nothing about the first attempt.
//!
//! A peer is several instances over one database. Calls go round; whoever refuses the connection is passed
//! over at once.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use reqwest::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};

pub use crate::outcome::{CallError, Outcome};
use crate::{context::CallContext, problem::Problem};

/// The first wait before asking again; doubled each time, and jittered.
const BACKOFF_MIN: Duration = Duration::from_millis(25);
/// The longest wait before asking again.
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// The one HTTP client of a process: no TLS, no proxies, no redirects, and as many idle connections as a
/// burst of a thousand buyers leaves behind. Share it; each client has a pool of its own.
pub fn http_client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy() // an environment's proxy must not see calls on the loopback
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(1))
        .pool_max_idle_per_host(1024)
        // Shorter than the server's: a connection that the server just closed would make a call unknown.
        .pool_idle_timeout(Duration::from_secs(20))
        .build()
        .expect("a client without TLS reads nothing from the system")
}

/// Another service of the suite. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: &'static str,
    base_urls: Vec<String>,
    next: AtomicUsize,
    http: reqwest::Client,
    timeout: Duration,
}

/// A successful answer.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// 2xx.
    pub status: StatusCode,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body; an empty one reads as JSON `null`, so `()` and `Option<_>` fit.
    pub body: T,
}

impl Peer {
    /// A peer with these instances. `timeout` bounds each attempt of each call unless the call says otherwise.
    pub fn new(
        http: &reqwest::Client,
        name: &'static str,
        base_urls: &[String],
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        ensure!(!base_urls.is_empty(), "no URL is configured for {name}");
        for url in base_urls {
            let url: reqwest::Url = url
                .parse()
                .with_context(|| format!("{url:?} is no URL for {name}"))?;
            ensure!(
                url.scheme() == "http",
                "calls inside the suite are plain http, {name} has {url}"
            );
        }
        let base_urls = base_urls
            .iter()
            .map(|url| url.trim_end_matches('/').to_owned())
            .collect::<Vec<_>>();
        let next = AtomicUsize::new(rand::random_range(0..base_urls.len()));
        Ok(Self {
            inner: Arc::new(Inner {
                name,
                base_urls,
                next,
                http: http.clone(),
                timeout,
            }),
        })
    }

    /// The peer's name, as in its errors.
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// The base URLs of its instances.
    pub fn base_urls(&self) -> &[String] {
        &self.inner.base_urls
    }

    /// A `GET` of `path` ("/v1/…").
    pub fn get(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::GET, path)
    }

    /// A `PUT`.
    pub fn put(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::PUT, path)
    }

    /// A `POST`.
    pub fn post(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::POST, path)
    }

    /// A `DELETE`.
    pub fn delete(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::DELETE, path)
    }

    fn call(&self, method: Method, path: impl Into<String>) -> Call<'_> {
        Call {
            peer: self,
            method,
            path: path.into(),
            headers: HeaderMap::new(),
            body: None,
            context: None,
            timeout: self.inner.timeout,
        }
    }

    /// Asks every instance once, all at the same time; for health and topology.
    pub async fn ask_each<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Vec<(String, Result<Answer<T>, CallError>)> {
        let calls = self.inner.base_urls.iter().map(|base_url| async move {
            let result = match self.get(path).attempt(base_url, self.inner.timeout).await {
                Attempt::Answered(result) => result,
                Attempt::NotSent(reason) => Err(CallError::Unreachable {
                    peer: self.inner.name,
                    reason,
                }),
            };
            (base_url.clone(), result)
        });
        futures::future::join_all(calls).await
    }
}

/// A call in preparation. Nothing is sent until [`Self::send`], [`Self::until_known`] or [`Self::until_settled`].
#[derive(Debug, Clone)]
#[must_use = "nothing is sent until `.send()` or `.until_known()`"]
pub struct Call<'p> {
    peer: &'p Peer,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Option<Bytes>,
    context: Option<CallContext>,
    timeout: Duration,
}

/// One attempt at one instance.
enum Attempt<T> {
    Answered(Result<Answer<T>, CallError>),
    /// The connection was refused: nothing was sent, the next instance may take it.
    NotSent(String),
}

impl Call<'_> {
    /// Sends this as the JSON body. Encoded once: every attempt sends the same bytes.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        self.body = Some(
            serde_json::to_vec(body)
                .expect("bodies are plain data with string keys")
                .into(),
        );
        self
    }

    /// Carries the request's context on.
    pub fn context(mut self, context: &CallContext) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Bounds each attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Asks once (an instance that refuses the connection does not count as asked).
    pub async fn send<T: DeserializeOwned>(&self) -> Result<Answer<T>, CallError> {
        self.try_instances(self.timeout).await
    }

    /// Asks until it is *known* what happened, at the latest at `deadline`.
    ///
    /// Repeats the call only after an unknown outcome; a refusal is an answer, and so is "busy" or
    /// "unreachable", as long as no earlier attempt went unknown. The call must be idempotent: a `GET`, a `PUT`
    /// or `DELETE` of an id, or a `POST` that carries an id.
    pub async fn until_known<T: DeserializeOwned>(&self, deadline: Instant) -> Result<Answer<T>, CallError> {
        self.repeat(deadline, |error| matches!(error, CallError::Unknown { .. }))
            .await
    }

    /// Like [`Self::until_known`], and asks again too while the peer is busy or away: for steps after the
    /// pivot, which must happen sooner or later.
    pub async fn until_settled<T: DeserializeOwned>(
        &self,
        deadline: Instant,
    ) -> Result<Answer<T>, CallError> {
        self.repeat(deadline, CallError::retryable).await
    }

    async fn repeat<T: DeserializeOwned>(
        &self,
        deadline: Instant,
        again: fn(&CallError) -> bool,
    ) -> Result<Answer<T>, CallError> {
        let mut doubt: Option<CallError> = None;
        let mut backoff = BACKOFF_MIN;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match self.try_instances(self.timeout.min(left)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if matches!(error, CallError::Refused { .. }) || (doubt.is_none() && !again(&error)) {
                return Err(error);
            }
            tracing::debug!(peer = self.peer.inner.name, path = %self.path, %error, "asking again");
            if error.outcome() == Outcome::Unknown {
                doubt = Some(error.clone());
            }
            let wait = rand::random_range(backoff / 2..=backoff);
            if Instant::now() + wait >= deadline {
                // What one attempt left unknown, a busy or absent peer cannot make known.
                return Err(doubt.unwrap_or(error));
            }
            tokio::time::sleep(wait).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    async fn try_instances<T: DeserializeOwned>(&self, timeout: Duration) -> Result<Answer<T>, CallError> {
        let inner = &self.peer.inner;
        let first = inner.next.fetch_add(1, Relaxed);
        let mut reason = String::new();
        for turn in 0..inner.base_urls.len() {
            let base_url = &inner.base_urls[first.wrapping_add(turn) % inner.base_urls.len()];
            match self.attempt(base_url, timeout).await {
                Attempt::Answered(result) => return result,
                Attempt::NotSent(why) => reason = why,
            }
        }
        Err(CallError::Unreachable {
            peer: inner.name,
            reason,
        })
    }

    async fn attempt<T: DeserializeOwned>(&self, base_url: &str, timeout: Duration) -> Attempt<T> {
        let inner = &self.peer.inner;
        let mut request = inner
            .http
            .request(self.method.clone(), format!("{base_url}{}", self.path))
            .headers(self.headers.clone())
            .timeout(timeout);
        if let Some(body) = &self.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone());
        }
        if let Some(context) = &self.context {
            request = context.apply(request);
        }
        let unknown = |reason: String| {
            Err(CallError::Unknown {
                peer: inner.name,
                reason,
            })
        };
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Attempt::NotSent(chain(&error)),
            Err(error) => return Attempt::Answered(unknown(chain(&error))),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let body = match response.bytes().await {
            Ok(body) => body,
            Err(error) => return Attempt::Answered(unknown(chain(&error))),
        };
        Attempt::Answered(self.classify(status, headers, &body))
    }

    fn classify<T: DeserializeOwned>(
        &self,
        status: StatusCode,
        headers: HeaderMap,
        body: &[u8],
    ) -> Result<Answer<T>, CallError> {
        let peer = self.peer.inner.name;
        if status.is_success() {
            let text: &[u8] = if body.is_empty() { b"null" } else { body };
            return match serde_json::from_slice(text) {
                Ok(body) => Ok(Answer {
                    status,
                    headers,
                    body,
                }),
                // It was done, but what exactly we cannot read: not something to build on.
                Err(error) => Err(CallError::Unknown {
                    peer,
                    reason: format!("{status} with a body that {error}"),
                }),
            };
        }
        let problem = Problem::decode(status, &headers, body);
        let may_come_back = headers.contains_key(RETRY_AFTER);
        match status {
            // The peer itself says that it does not know: `outcome-unknown`, `payment-unknown`.
            StatusCode::SERVICE_UNAVAILABLE if problem.slug.ends_with("-unknown") => {
                Err(CallError::Unknown {
                    peer,
                    reason: problem.to_string(),
                })
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS if may_come_back => {
                Err(CallError::Busy { peer, problem })
            }
            _ if status.is_client_error() => Err(CallError::Refused { peer, problem }),
            _ => Err(CallError::Unknown {
                peer,
                reason: problem.to_string(),
            }),
        }
    }
}

/// An error with its causes: reqwest's own text ends before the interesting part.
fn chain(error: &dyn std::error::Error) -> String {
    use fmt::Write as _;
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}
