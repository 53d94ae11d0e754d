//! The `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header): the caller's name for one intention.
//!
//! The draft writes it as a quoted string, most clients send it bare; both mean the same key. Everything that
//! could be read as two keys is refused: guessing wrong would make one purchase out of two, or two out of one.

use std::fmt;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, StatusCode, request::Parts},
};

use crate::problem::Problem;
use ticketing_types::header::IDEMPOTENCY_KEY;

/// Longest key, in characters.
pub const KEY_LEN_MAX: usize = 255;

/// A caller's key: 1 to 255 visible ASCII characters, without the quotes it may have come in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads a header value, quoted or bare.
    pub fn parse(value: &str) -> Result<Self, Problem> {
        let value = value.trim_matches([' ', '\t']);
        let key = match value.strip_prefix('"') {
            Some(rest) => rest
                .strip_suffix('"')
                .ok_or_else(|| invalid("its closing quote is missing"))?,
            None => value,
        };
        if key.is_empty() {
            return Err(invalid("it is empty"));
        }
        if key.len() > KEY_LEN_MAX {
            return Err(invalid("it is longer than 255 characters"));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("it has characters that are not visible ASCII"));
        }
        if key.contains([',', '"', '\\']) {
            return Err(invalid(
                "it looks like a list: commas, quotes and backslashes are not allowed inside",
            ));
        }
        Ok(Self(key.to_owned()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "idempotency-key-missing")
                .title("Idempotency-Key is missing")
                .detail("Send an Idempotency-Key header that is new for each purchase and the same for each retry of it."));
        };
        if values.next().is_some() {
            return Err(invalid("there are several of them"));
        }
        let value = value
            .to_str()
            .map_err(|_| invalid("it has characters that are not visible ASCII"))?;
        Self::parse(value)
    }
}

fn invalid(why: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "idempotency-key-invalid")
        .title("Idempotency-Key is not usable")
        .detail(format!(
            "A key is 1 to 255 visible ASCII characters, quoted or bare, sent once; {why}."
        ))
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Self::from_headers(&parts.headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn read(values: &[&[u8]]) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                IDEMPOTENCY_KEY,
                HeaderValue::from_bytes(value).expect("a header value"),
            );
        }
        IdempotencyKey::from_headers(&headers)
            .map(|key| key.0)
            .map_err(|problem| problem.slug.to_string())
    }

    #[test]
    fn quoted_and_bare_are_the_same_key() {
        assert_eq!(read(&[b"k-1"]), Ok("k-1".into()));
        assert_eq!(read(&[b"\"k-1\""]), Ok("k-1".into()));
        assert_eq!(read(&["x".repeat(255).as_bytes()]), Ok("x".repeat(255)));
    }

    #[test]
    fn whatever_could_be_two_keys_or_none_is_refused() {
        assert_eq!(read(&[]), Err("idempotency-key-missing".into()));
        let long = "x".repeat(256);
        let bad: [&[&[u8]]; 9] = [
            &[b""],
            &[b"\"\""],
            &[b"a", b"b"],
            &[b"a, b"],
            &[b"\"a\",\"b\""],
            &[long.as_bytes()],
            &["schlüssel".as_bytes()],
            &[b"two words"],
            &[b"\"open"],
        ];
        for values in bad {
            assert_eq!(read(values), Err("idempotency-key-invalid".into()), "{values:?}");
        }
    }
}
