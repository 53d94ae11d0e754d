//! [`Problem`]: the one shape of every error answer (RFC 9457).
//!
//! `{type: "/problems/<slug>", title, status, detail, instance}` and, beside them, whatever members a slug
//! promises: `errors`, `lines`, `known`, … Clients branch on the slug, people read the detail. A cause (an SQL
//! error, a stack) never goes into a body; it belongs in the log, where it is handled.
//!
//! Services read problems as well as write them: [`Problem::decode`] takes a peer's answer apart again, also
//! when it is no problem at all but a proxy's HTML page.

use std::{borrow::Cow, ops::Deref, time::Duration};

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// An error answer under construction, or one received from a peer.
///
/// Boxed, because it travels as the `Err` of nearly every function of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem(Box<Parts>);

/// The members of a [`Problem`], readable through it: `problem.slug`, `problem.status`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// What kind of problem; `type` is `/problems/<slug>`.
    pub slug: Cow<'static, str>,
    /// The HTTP status.
    pub status: StatusCode,
    /// The kind in words; the same for every occurrence.
    pub title: Cow<'static, str>,
    /// This occurrence in words.
    pub detail: Option<String>,
    /// The path of the request; filled in by [`crate::finish()`] when left open.
    pub instance: Option<String>,
    /// Further members.
    pub extensions: Map<String, Value>,
    /// When to come back; sent as `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the body; the name with a `/` before it for a path or query parameter.
    #[schema(example = "/items/0/quantity")]
    pub pointer: String,
    /// What would have been right.
    pub reason: String,
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.reason),
            pointer => write!(f, "{pointer}: {}", self.reason),
        }
    }
}

impl Deref for Problem {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Problem {
    /// A problem of this kind. The title is the slug in words ("sold-out" → "Sold out") until set otherwise.
    pub fn new(status: StatusCode, slug: impl Into<Cow<'static, str>>) -> Self {
        let slug = slug.into();
        let title = title_of(&slug);
        Self(Box::new(Parts {
            slug,
            status,
            title: Cow::Owned(title),
            detail: None,
            instance: None,
            extensions: Map::new(),
            retry_after: None,
        }))
    }

    /// Says it in other words than the slug's.
    pub fn title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.0.title = title.into();
        self
    }

    /// Says what happened this time.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Names the occurrence by a path other than the request's.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.0.instance = Some(instance.into());
        self
    }

    /// Adds a member beside the standard ones.
    pub fn with(mut self, member: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("members are plain data with string keys");
        self.0.extensions.insert(member.to_owned(), value);
        self
    }

    /// Tells the client when to come back (whole seconds, rounded up).
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// 400 `invalid-request` with everything that is wrong.
    pub fn invalid_request(errors: Vec<FieldError>) -> Self {
        let detail = errors
            .iter()
            .map(FieldError::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        Self::new(StatusCode::BAD_REQUEST, "invalid-request")
            .detail(detail)
            .with("errors", errors)
    }

    /// 400 `invalid-request` with one thing wrong.
    pub fn invalid(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::invalid_request(vec![FieldError {
            pointer: pointer.into(),
            reason: reason.into(),
        }])
    }

    /// 404 `not-found`.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found").detail(detail)
    }

    /// 500 `internal`: a fault of ours. The cause goes to the log, not in here.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal")
            .title("Internal error")
            .detail("Something went wrong on our side; the log knows more.")
    }

    /// 503 with `Retry-After`: nothing happened, come back later.
    pub fn busy(slug: impl Into<Cow<'static, str>>, wait: Duration) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, slug).retry_after(wait)
    }

    /// One of the further members, when it is there and has the expected shape.
    pub fn member<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.0.extensions.get(name)?.clone()).ok()
    }

    /// Reads a peer's error answer. Whatever is not a problem becomes one with the slug `unspecified`.
    pub fn decode(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let is_problem = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| {
                value
                    .split(';')
                    .next()
                    .is_some_and(|t| t.trim().eq_ignore_ascii_case(MEDIA_TYPE))
            });
        let members = is_problem
            .then(|| serde_json::from_slice::<Map<String, Value>>(body).ok())
            .flatten();
        let mut problem = match members {
            Some(members) => Self::from_members(status, members),
            None => Self::new(status, "unspecified").title(format!("Answer {status} without a problem body")),
        };
        problem.0.retry_after = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        problem
    }

    fn from_members(status: StatusCode, mut members: Map<String, Value>) -> Self {
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let kind = text("type").unwrap_or_default();
        let slug = kind
            .rsplit('/')
            .next()
            .filter(|slug| !slug.is_empty())
            .unwrap_or("unspecified")
            .to_owned();
        let (title, detail, instance) = (text("title"), text("detail"), text("instance"));
        members.remove("status"); // the real one is the answer's
        let mut problem = Self::new(status, slug);
        if let Some(title) = title {
            problem.0.title = Cow::Owned(title);
        }
        problem.0.detail = detail;
        problem.0.instance = instance;
        problem.0.extensions = members;
        problem
    }

    /// The JSON body.
    pub fn to_json(&self) -> Value {
        // Standard members last, so that no extension can replace one.
        let mut members = self.extensions.clone();
        members.insert("type".into(), format!("/problems/{}", self.slug).into());
        members.insert("title".into(), self.title.as_ref().into());
        members.insert("status".into(), self.status.as_u16().into());
        if let Some(detail) = &self.detail {
            members.insert("detail".into(), detail.as_str().into());
        }
        if let Some(instance) = &self.instance {
            members.insert("instance".into(), instance.as_str().into());
        }
        Value::Object(members)
    }
}

/// "sold-out" → "Sold out".
fn title_of(slug: &str) -> String {
    let words = slug.replace('-', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status.as_u16(), self.slug)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.to_json())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(wait) = self.retry_after {
            // Rounded up: "0" would invite the client to come back before the time.
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let seconds =
                HeaderValue::from_str(&seconds.to_string()).expect("digits are a valid header value");
            headers.insert(header::RETRY_AFTER, seconds);
        }
        // Kept beside its own text, so that `finish` can fill in the instance and name the slug in the log.
        response.extensions_mut().insert(self);
        response
    }
}

/// Gives a problem answer its `instance`, unless it has one.
pub(crate) fn complete(mut response: Response, path: &str) -> Response {
    match response.extensions().get::<Problem>() {
        Some(problem) if problem.instance.is_none() => {
            let body = problem.clone().instance(path).to_json().to_string();
            response.headers_mut().remove(header::CONTENT_LENGTH); // of the shorter text
            *response.body_mut() = Body::from(body);
            response
        }
        _ => response,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(content_type: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
    }

    #[test]
    fn a_problem_reads_back_as_itself() {
        let sent = Problem::new(StatusCode::CONFLICT, "sold-out")
            .detail("2 wanted, 1 there")
            .instance("/v1/holds/h")
            .with("lines", [1, 2]);
        let read = Problem::decode(
            sent.status,
            &headers(MEDIA_TYPE),
            sent.to_json().to_string().as_bytes(),
        );
        assert_eq!(read, sent);
        assert_eq!(read.member::<Vec<u8>>("lines"), Some(vec![1, 2]));
        assert_eq!(read.title, "Sold out");
    }

    #[test]
    fn what_is_no_problem_becomes_one() {
        let read = Problem::decode(StatusCode::BAD_GATEWAY, &headers("text/html"), b"<h1>nginx</h1>");
        assert_eq!(
            (read.slug.as_ref(), read.status),
            ("unspecified", StatusCode::BAD_GATEWAY)
        );
        let read = Problem::decode(StatusCode::CONFLICT, &headers(MEDIA_TYPE), b"{broken");
        assert_eq!(read.slug, "unspecified");
    }

    #[test]
    fn an_extension_never_replaces_a_standard_member() {
        let body = Problem::new(StatusCode::CONFLICT, "x")
            .with("status", 200)
            .with("type", "y")
            .to_json();
        assert_eq!(body["status"], 409);
        assert_eq!(body["type"], "/problems/x");
    }

    #[test]
    fn retry_after_is_rounded_up_and_never_zero() {
        for (wait_ms, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2")] {
            let response = Problem::busy("x", Duration::from_millis(wait_ms)).into_response();
            assert_eq!(response.headers()[header::RETRY_AFTER], seconds);
        }
    }
}
