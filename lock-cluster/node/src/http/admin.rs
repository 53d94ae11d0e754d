//! Who may break locks and change the membership: whoever knows the administrator's token.
//!
//! Without a configured token nobody may. "Whoever is on this machine" would not do instead: a reverse proxy on
//! this machine is everybody.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use service_kit::Problem;

use super::{Api, bearer};

/// Proof that a request may administer.
pub(crate) struct Admin;

impl FromRequestParts<Api> for Admin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Response> {
        let Some(expected) = &api.tokens.admin else {
            return Err(Problem::new(StatusCode::FORBIDDEN, "admin-disabled")
                .detail("this node was started without an administrator's token (--admin-token-file)")
                .into_response());
        };
        if bearer::shows(&parts.headers, expected) {
            Ok(Self)
        } else {
            Err(bearer::unauthorized(
                "this call needs the administrator's token: Authorization: Bearer …",
            ))
        }
    }
}
