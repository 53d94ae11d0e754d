//! The API of all services on one page (`/docs`), from files inside this program: it works without a network.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use http::uri::PathAndQuery;
use service_kit::{ApiPath, Problem};
use utoipa_swagger_ui::{Config, SwaggerUi, Url};

use super::AppState;
use crate::upstream::parcel::Parcel;

/// Swagger UI over everybody's description.
pub(super) fn pages<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let url = |name: &'static str, path: &'static str| Url::new(name, path);
    let config = Config::new([
        url("checkout", "/openapi/checkout.json"),
        url("inventory", "/openapi/inventory.json"),
        url("billing", "/openapi/billing.json"),
        url("lock cluster", "/openapi/lock-cluster.json"),
        url("front door", "/openapi.json"),
        url("card gateway (inside)", "/openapi/gateway.json"),
    ])
    .try_it_out_enabled(true);
    SwaggerUi::new("/docs").config(config).into()
}

/// Show the OpenAPI document of one service.
#[utoipa::path(
    get, path = "/openapi/{document}", tag = "boxoffice",
    params(("document" = String, Path, example = "checkout.json")),
    responses((status = 200, description = "An OpenAPI document"), (status = 404, description = "`not-found`"))
)]
pub(super) async fn openapi_of(
    State(state): State<AppState>,
    ApiPath(document): ApiPath<String>,
) -> Result<Response, Problem> {
    let parcel = Parcel::get(PathAndQuery::from_static("/openapi.json"));
    let service = document.strip_suffix(".json").unwrap_or_default();
    if service == "lock-cluster" {
        return state.upstreams.nodes.send(parcel, true).await;
    }
    match state
        .upstreams
        .pools()
        .into_iter()
        .find(|pool| pool.name() == service)
    {
        Some(pool) => pool.send(parcel, true).await,
        None => Err(Problem::not_found(format!(
            "there is no service that {document} could describe"
        ))),
    }
}
