//! Inventory's HTTP (DESIGN §5.2): parses, asks the domain, answers. It decides nothing.

mod audit;
#[cfg(test)]
mod documented;
mod error;
mod events;
mod holds;

use ticketing_types::Strategy;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::Inventory;

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub(crate) inventory: Inventory,
    /// For requests that name no strategy.
    pub(crate) default_strategy: Strategy,
}

#[derive(OpenApi)]
#[openapi(info(
    title = "inventory",
    description = "What there is to sell, who holds some of it for a minute, and the tickets. \
                   Headers: `Lock-Strategy` names how the critical section is guarded, `Fault` makes something go wrong."
))]
struct ApiDoc;

/// The routes and their description.
pub(crate) fn router(state: AppState) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (router, openapi) = routes().split_for_parts();
    (router.with_state(state), openapi)
}

fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(routes!(events::create, events::list))
        .routes(routes!(events::show))
        .routes(routes!(holds::place, holds::release))
        .routes(routes!(holds::confirm))
        .routes(routes!(audit::records))
}
