//! A request that can be sent more than once: head and body in memory (a body has at most 64 KiB here).
//!
//! The path goes on byte for byte. A lock may be called `a/../b` or `%2F`, and a client library that tidies
//! URLs up would ask for another lock.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use service_kit::Problem;
use service_kit::extract::read_body;
use ticketing_types::header::TRACEPARENT;

/// Headers that are about one connection, not about the message (RFC 9110 §7.6.1).
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authorization"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A request in memory.
#[derive(Debug, Clone)]
pub(crate) struct Parcel {
    pub(crate) method: Method,
    pub(crate) path_and_query: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Parcel {
    /// Takes a request in: reads its body (413 over 64 KiB) and drops what is only about its connection.
    pub(crate) async fn take(request: Request) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let mut headers = parts.headers;
        without_hop_by_hop(&mut headers);
        headers.remove(HOST); // the instance's own
        headers.remove(http::header::CONTENT_LENGTH); // made again from the body
        headers.remove(http::header::EXPECT); // the body is already here
        headers.entry(TRACEPARENT).or_insert_with(new_trace);
        let path_and_query = parts
            .uri
            .path_and_query()
            .cloned()
            .unwrap_or(PathAndQuery::from_static("/"));
        let body = read_body(body).await?;
        Ok(Self {
            method: parts.method,
            path_and_query,
            headers,
            body,
        })
    }

    /// A question of our own.
    pub(crate) fn get(path_and_query: PathAndQuery) -> Self {
        Self {
            method: Method::GET,
            path_and_query,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// The path, as it was sent.
    pub(crate) fn path(&self) -> &str {
        self.path_and_query.path()
    }

    /// The request to one instance.
    pub(super) fn to(&self, authority: &Authority) -> http::Request<Full<Bytes>> {
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(authority.clone());
        uri.path_and_query = Some(self.path_and_query.clone());
        let mut request = http::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = Uri::from_parts(uri).expect("scheme, authority and path are there");
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// An instance's answer as ours: its head without what is about its connection, its body as it comes.
pub(super) fn answer(response: http::Response<Incoming>) -> Response {
    let (mut parts, body) = response.into_parts();
    without_hop_by_hop(&mut parts.headers);
    parts.version = http::Version::HTTP_11;
    Response::from_parts(parts, Body::new(body))
}

fn without_hop_by_hop(headers: &mut HeaderMap) {
    // `Connection: x` says that the header `x` is about this connection, too.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// The request came without a trace; it gets one here, so that the whole suite logs it under one id.
fn new_trace() -> HeaderValue {
    // `| 1`: ids of zeros are invalid.
    let (trace, span) = (rand::random::<u128>() | 1, rand::random::<u64>() | 1);
    HeaderValue::from_str(&format!("00-{trace:032x}-{span:016x}-01")).expect("hexadecimal digits and dashes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_about_the_connection_stays_behind() {
        let request = Request::builder()
            .uri("/v1/locks/a/../b%2Fc?limit=1")
            .header("connection", "keep-alive, x-mine")
            .header("x-mine", "1")
            .header("te", "trailers")
            .header("host", "shop.example")
            .header("lock-strategy", "raft")
            .body(Body::from("hello"))
            .expect("a request");
        let parcel = Parcel::take(request).await.expect("small");
        let mut names: Vec<_> = parcel.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["lock-strategy", "traceparent"]);
        let sent = parcel.to(&Authority::from_static("127.0.0.1:8201"));
        assert_eq!(
            sent.uri().to_string(),
            "http://127.0.0.1:8201/v1/locks/a/../b%2Fc?limit=1"
        );
    }

    #[tokio::test]
    async fn a_trace_that_came_along_goes_on() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let request = Request::builder()
            .uri("/")
            .header(TRACEPARENT, trace)
            .body(Body::empty())
            .expect("a request");
        assert_eq!(
            Parcel::take(request).await.expect("small").headers[TRACEPARENT],
            trace
        );
    }

    #[tokio::test]
    async fn a_body_over_64_kib_is_refused() {
        let request = Request::builder()
            .uri("/")
            .body(Body::from(vec![b' '; 64 * 1024 + 1]))
            .expect("a request");
        assert_eq!(
            Parcel::take(request).await.expect_err("too large").slug,
            "body-too-large"
        );
    }
}
