//! axum's own refusals, as problems. A framework's plain-text 400 would be the one answer that no client of
//! ours can read.

use axum::{
    extract::rejection::{BytesRejection, ExtensionRejection, JsonRejection, PathRejection, QueryRejection},
    http::StatusCode,
};

use crate::problem::Problem;

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => unsupported_media_type(),
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            _ => Self::invalid("", rejection.body_text()),
        }
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            _ => Self::invalid("", "the body could not be read to its end"),
        }
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        use axum::extract::path::ErrorKind;
        let PathRejection::FailedToDeserializePathParams(error) = rejection else {
            tracing::error!(%rejection, "a handler takes path parameters that its route does not have");
            return Self::internal();
        };
        match error.into_kind() {
            ErrorKind::ParseErrorAtKey {
                key,
                value,
                expected_type,
            } => Self::invalid(format!("/{key}"), format!("{value:?} is no {expected_type}")),
            ErrorKind::DeserializeError { key, message, .. } => Self::invalid(format!("/{key}"), message),
            ErrorKind::InvalidUtf8InPathParam { key } => {
                Self::invalid(format!("/{key}"), "is not valid UTF-8")
            }
            other => Self::invalid("", other.to_string()),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        // "Failed to deserialize query string: limit: invalid digit found in string"
        let text = rejection.body_text();
        let text = text
            .strip_prefix("Failed to deserialize query string: ")
            .unwrap_or(&text);
        match text.split_once(": ") {
            Some((name, reason)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                Self::invalid(format!("/{name}"), reason)
            }
            _ => Self::invalid("", text),
        }
    }
}

impl From<ExtensionRejection> for Problem {
    fn from(rejection: ExtensionRejection) -> Self {
        tracing::error!(%rejection, "a handler asks for an extension that no layer adds");
        Self::internal()
    }
}

/// 415.
pub(crate) fn unsupported_media_type() -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type")
        .detail("send a JSON body with Content-Type: application/json")
}

/// 413.
pub(crate) fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large").detail(format!(
        "a body has at most {} bytes",
        crate::extract::BODY_LEN_MAX
    ))
}
