//! Bearer tokens: what a request shows, and whether it is the right one.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use service_kit::Problem;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Secret;

/// Whether the request shows this token.
pub(super) fn shows(headers: &HeaderMap, expected: &Secret) -> bool {
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|value| token(value.as_bytes()));
    given.is_some_and(|given| same(given, expected.expose().as_bytes()))
}

/// 401, and which kind of proof is asked for (RFC 9110 §15.5.2).
pub(super) fn unauthorized(detail: &str) -> Response {
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized").detail(detail);
    let mut response = problem.into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// The token of `Bearer <token>`; the scheme's case does not matter (RFC 9110 §11.1).
fn token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then_some(token.trim_ascii())
}

/// Compares in a time that tells nothing: hashes are equally long whatever was sent.
fn same(given: &[u8], expected: &[u8]) -> bool {
    Sha256::digest(given).ct_eq(&Sha256::digest(expected)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_counts() {
        assert_eq!(token(b"Bearer abc"), Some(&b"abc"[..]));
        assert_eq!(token(b"bEARER  abc "), Some(&b"abc"[..]));
        assert_eq!(token(b"Basic abc"), None);
        assert_eq!(token(b"Bear"), None);
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"ab", b"abc") && !same(b"", b"abc"));
    }
}
