//! Bodies, paths and queries, with refusals that say where: `{pointer: "/items/0/quantity", reason: "…"}`.
//!
//! Parsing is the validation: the types behind `T` cannot hold a wrong value, so what a handler receives is
//! right. The pointer comes from `serde_path_to_error`; "missing field" errors, which serde reports at the
//! parent, are moved to the field itself.
//!
//! A body over the limit is read to its end (up to a bound) before it is refused. Answering while the client
//! still sends would close the connection under its hands, and it would see a reset instead of the 413.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::{
        FromRequest, FromRequestParts, Path, Query, RawPathParams, Request, path, rejection::PathRejection,
    },
    http::{HeaderMap, header, request::Parts},
};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::Segment;

use crate::{
    problem::{FieldError, Problem},
    rejection::{too_large, unsupported_media_type},
};

/// Longest body, in bytes.
pub const BODY_LEN_MAX: usize = 64 * 1024;
/// How much of a longer body is still read and thrown away before it is refused, in bytes.
const DISCARD_LEN_MAX: usize = 8 * 1024 * 1024;
/// How long a client may take to send its body.
const BODY_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A JSON body. 415 for another content type, 413 over 64 KiB, 400 `invalid-request` for everything else.
#[derive(Debug, Clone, Copy)]
pub struct ApiJson<T>(pub T);

/// Path parameters, with problems for refusals.
#[derive(Debug, Clone, Copy)]
pub struct ApiPath<T>(pub T);

/// Query parameters, with problems for refusals.
#[derive(Debug, Clone, Copy)]
pub struct ApiQuery<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ApiJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let is_json = is_json(&parts.headers);
        let bytes = read_body(body).await?;
        if !is_json {
            return Err(unsupported_media_type());
        }
        parse(&bytes).map(Self)
    }
}

/// Parses a JSON body; public for bodies that arrive by another way than a request.
///
/// Every body of this suite is an object. A list is refused here, because serde would take its items for an object's
/// members in the order of their declaration, which is no part of any API.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::invalid("", "must be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer_of(error.path());
        explain(pointer, error.inner())
    })?;
    json.end().map_err(|error| explain(String::new(), &error))?;
    Ok(value)
}

fn explain(pointer: String, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    // serde_json ends with " at line 1 column 17": noise next to a pointer, but all there is for broken JSON.
    let (mut pointer, reason) = match error.classify() {
        Category::Data => {
            let reason = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
            (pointer, reason.to_owned())
        }
        Category::Eof | Category::Syntax | Category::Io => (String::new(), format!("not valid JSON: {text}")),
    };
    if let Some(field) = reason
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        pointer.push('/');
        pointer.push_str(field);
    }
    Problem::invalid_request(vec![FieldError { pointer, reason }])
}

fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use std::fmt::Write as _;
    let mut pointer = String::new();
    for segment in path {
        // Writing to a string cannot fail.
        let _ = match segment {
            Segment::Seq { index } => write!(pointer, "/{index}"),
            Segment::Map { key } => write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1")),
            // An enum's variant is no place in the document, and neither is what serde lost track of.
            Segment::Enum { .. } | Segment::Unknown => Ok(()),
        };
    }
    pointer
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let essence = value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// A whole body, whatever is in it: at most 64 KiB, within ten seconds. For those who pass it on.
pub async fn read_body(body: Body) -> Result<Bytes, Problem> {
    tokio::time::timeout(BODY_READ_TIMEOUT, read(body))
        .await
        .unwrap_or_else(|_| Err(Problem::invalid("", "the body did not arrive in time")))
}

/// The whole body, or 413 after having read past the limit.
async fn read(mut body: Body) -> Result<Bytes, Problem> {
    let mut kept = Vec::new();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::invalid("", "the body could not be read to its end"))?;
        let Ok(data) = frame.into_data() else { continue };
        len += data.len();
        if len <= BODY_LEN_MAX {
            kept.extend_from_slice(&data);
        } else if len > DISCARD_LEN_MAX {
            break;
        }
    }
    if len > BODY_LEN_MAX {
        Err(too_large())
    } else {
        Ok(kept.into())
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                // axum counts the parameters, and names one only where the handler takes them by name.
                let no_such = |value: &str, expected: &str| format!("{value:?} is no {expected}");
                let (at, reason) = match error.kind() {
                    path::ErrorKind::Message(reason) => (0, reason.clone()),
                    path::ErrorKind::ParseError { value, expected_type } => {
                        (0, no_such(value, expected_type))
                    }
                    path::ErrorKind::ParseErrorAtIndex {
                        index,
                        value,
                        expected_type,
                    } => (*index, no_such(value, expected_type)),
                    _ => return Err(PathRejection::FailedToDeserializePathParams(error).into()),
                };
                let params = RawPathParams::from_request_parts(parts, state).await.ok();
                let name = params.as_ref().and_then(|params| params.iter().nth(at));
                let pointer = name.map_or(String::new(), |(name, _)| format!("/{name}"));
                Err(Problem::invalid(pointer, reason))
            }
            Err(rejection) => Err(rejection.into()),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(value) = Query::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Cart {
        #[allow(dead_code)]
        buyer: String,
        #[allow(dead_code)]
        items: Vec<Item>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Item {
        #[allow(dead_code)]
        quantity: ticketing_types::Quantity,
    }

    fn pointer_of_error_in(body: &str) -> String {
        let problem = parse::<Cart>(body.as_bytes()).expect_err(body);
        assert_eq!(problem.slug, "invalid-request");
        let errors = problem
            .member::<Vec<serde_json::Value>>("errors")
            .expect("a list");
        errors[0]["pointer"].as_str().expect("a pointer").to_owned()
    }

    #[test]
    fn the_pointer_names_the_wrong_place() {
        for (body, pointer) in [
            (
                r#"{"buyer": "b", "items": [{"quantity": 1}, {"quantity": 0}]}"#,
                "/items/1/quantity",
            ),
            (
                r#"{"buyer": "b", "items": [{"quantity": 1.5}]}"#,
                "/items/0/quantity",
            ),
            (r#"{"buyer": "b", "items": [{}]}"#, "/items/0/quantity"),
            (r#"{"items": []}"#, "/buyer"),
            (r#"{"buyer": 7, "items": []}"#, "/buyer"),
            (r#"[]"#, ""),
            (r#" ["b", []]"#, ""),
            (r#"{"buyer": "b", "#, ""),
            (r#"{"buyer": "b", "items": []} trailing"#, ""),
            ("", ""),
        ] {
            assert_eq!(pointer_of_error_in(body), pointer, "{body}");
        }
    }
}
