//! Checkout's HTTP (DESIGN §5.4): parses and answers. What an answer means is decided in `domain/`.

pub(crate) mod answer;
mod audit;
#[cfg(test)]
mod documented;
mod error;
mod purchases;

use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::checkout::Checkout;

#[derive(OpenApi)]
#[openapi(info(
    title = "checkout",
    description = "Buys tickets: holds the seats, reserves the money, confirms, captures. A purchase that began \
                   is finished, or undone, without the client's help."
))]
struct ApiDoc;

/// The routes and their description.
pub(crate) fn router(checkout: Checkout) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (router, openapi) = routes().split_for_parts();
    (router.with_state(checkout), openapi)
}

fn routes() -> OpenApiRouter<Checkout> {
    OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(routes!(purchases::buy, purchases::list))
        .routes(routes!(purchases::get))
        .routes(routes!(purchases::cancel))
        .routes(routes!(audit::records))
}
