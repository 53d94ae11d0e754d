//! Who may break locks and change the membership: whoever knows the administrator's token.
//!
//! Without a configured token nobody may. "Whoever is on this machine" would not do instead: a reverse proxy on
//! this machine is everybody.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use service_kit::Problem;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Api;

/// Proof that a request may administer.
pub(crate) struct Admin;

impl FromRequestParts<Api> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let Some(expected) = &api.admin_token else {
            return Err(Problem::new(StatusCode::FORBIDDEN, "admin-disabled")
                .detail("this node was started without an administrator's token (--admin-token-file)"));
        };
        let given = parts
            .headers
            .get(header::AUTHORIZATION)
            .map(|value| value.as_bytes());
        let given = given.and_then(bearer);
        if given.is_some_and(|given| same(given, expected.expose())) {
            Ok(Self)
        } else {
            Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized")
                .detail("this call needs the administrator's token: Authorization: Bearer …"))
        }
    }
}

/// The token of `Bearer <token>`; the scheme's case does not matter (RFC 9110 §11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
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
        assert_eq!(bearer(b"Bearer abc"), Some(&b"abc"[..]));
        assert_eq!(bearer(b"bEARER  abc "), Some(&b"abc"[..]));
        assert_eq!(bearer(b"Basic abc"), None);
        assert_eq!(bearer(b"Bear"), None);
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"ab", b"abc") && !same(b"", b"abc"));
    }
}
