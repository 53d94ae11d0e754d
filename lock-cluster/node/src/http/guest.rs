//! Who is answered at all: everybody, or, where the node has a client token, whoever shows it.
//!
//! The check stands in front of every route under `/v1`, those that upgrade the connection included, before a body is
//! read. Health, metrics and the API's description stay open: they say nothing about anybody's locks.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;

use super::{Api, Tokens, bearer};

/// Lets a request through, or does not.
pub(super) async fn admit(State(api): State<Api>, request: Request, next: Next) -> Response {
    if is_welcome(&api.tokens, request.headers()) {
        return next.run(request).await;
    }
    bearer::unauthorized("this node answers clients that show its token: Authorization: Bearer …")
}

/// An administrator is a client, too.
fn is_welcome(Tokens { client, admin }: &Tokens, headers: &HeaderMap) -> bool {
    let shows = |token| bearer::shows(headers, token);
    client.as_ref().is_none_or(shows) || admin.as_ref().is_some_and(shows)
}
