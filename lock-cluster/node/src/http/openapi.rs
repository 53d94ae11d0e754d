//! `/openapi.json`: collected from the handlers, so that it cannot promise a route that is not there.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{backup, cluster, events, locks, pipe, sessions};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Lock node",
        description = "Named locks with fencing tokens, replicated by Raft. Any node answers; commands and \
                       linearizable reads are answered by the leader, and another node points to it (421). Errors \
                       are RFC 9457 problems; `type` is `/problems/<slug>`, and the responses below name the slugs."
    ),
    paths(
        sessions::open, sessions::keep_alive, sessions::close, sessions::acquire, sessions::release, pipe::open,
        locks::list, locks::show, locks::break_lock, events::stream,
        cluster::status, cluster::add_member, cluster::promote_member, cluster::remove_member,
        backup::backup, backup::restore,
    ),
    modifiers(&AdminToken)
)]
struct Document;

/// The bearer token of administrators' calls.
struct AdminToken;

impl Modify for AdminToken {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("admin", SecurityScheme::Http(bearer));
    }
}

/// The description of the client port.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
