//! The processor's HTTP: four calls that move money, and its book to look at.
//!
//! The calls are the same to this layer: check the key, make the call, answer the line, in the manner that
//! the card wants.

#[cfg(test)]
mod documented;
mod error;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use service_kit::{ApiJson, ApiPath, CallContext, Faults, Problem};
use ticketing_types::PaymentId;
use ticketing_types::gateway::{
    Authorize, Capture, EntryKind, Ledger as LedgerView, LedgerEntry, LedgerLookup, Refund, Void,
};
use ticketing_types::header::IDEMPOTENT_REPLAYED;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::card::Manner;
use crate::domain::rules::Call;
use crate::store::Ledger;

/// Where things can be made to go wrong.
pub(crate) const FAULT_POINTS: [&str; 2] = [BEFORE_CHARGE, AFTER_CHARGE];
const BEFORE_CHARGE: &str = "gateway.before-charge";
const AFTER_CHARGE: &str = "gateway.after-charge";

/// Longest idempotency key, in characters.
const KEY_LEN_MAX: usize = 255;
/// References in one lookup.
const REFERENCES_MAX: usize = 1000;

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub(crate) ledger: Ledger,
    pub(crate) faults: Faults,
    /// How late `card_slow` answers.
    pub(crate) late: Duration,
}

#[derive(OpenApi)]
#[openapi(info(
    title = "card-gateway",
    description = "Stands in for a card processor. It tells a retry from a second charge by the key alone."
))]
struct ApiDoc;

/// The routes and their description.
pub(crate) fn router(state: AppState) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (router, openapi) = routes().split_for_parts();
    (router.with_state(state), openapi)
}

fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(routes!(authorize))
        .routes(routes!(capture))
        .routes(routes!(void))
        .routes(routes!(refund))
        .routes(routes!(lookup))
        .routes(routes!(lines))
}

/// Reserve money on a card.
#[utoipa::path(
    post, path = "/v1/authorizations", tag = "gateway", request_body = Authorize,
    responses(
        (status = 201, body = LedgerEntry, description = "Reserved"),
        (status = 200, body = LedgerEntry, description = "This key was used before: the same line again"),
        (status = 402, description = "`card-declined`"),
        (status = 409, description = "`reference-closed`: the reference was voided"),
        (status = 422, description = "`key-reused`: the key came with another body before"),
        (status = 503, description = "`processor-unavailable`: nothing was charged; `outcome-unknown`: the same key will tell"),
    )
)]
async fn authorize(
    State(state): State<AppState>,
    context: CallContext,
    ApiJson(call): ApiJson<Authorize>,
) -> Result<Response, Problem> {
    make(&state, &context, Call::Authorize(call)).await
}

/// Take reserved money. A new key takes it again.
#[utoipa::path(
    post, path = "/v1/captures", tag = "gateway", request_body = Capture,
    responses(
        (status = 201, body = LedgerEntry, description = "Taken"),
        (status = 200, body = LedgerEntry, description = "This key was used before: the same line again"),
        (status = 404, description = "`authorization-not-found`"),
        (status = 409, description = "`authorization-voided`"),
        (status = 422, description = "`key-reused`, `currency-mismatch`, `exceeds-authorization`"),
        (status = 503, description = "`processor-unavailable`: nothing was done; `outcome-unknown`: the same key will tell"),
    )
)]
async fn capture(
    State(state): State<AppState>,
    context: CallContext,
    ApiJson(call): ApiJson<Capture>,
) -> Result<Response, Problem> {
    make(&state, &context, Call::Capture(call)).await
}

/// Give reserved money back. Without an authorization: of the whole reference, which is closed with it.
#[utoipa::path(
    post, path = "/v1/voids", tag = "gateway", request_body = Void,
    responses(
        (status = 201, body = LedgerEntry, description = "Given back"),
        (status = 200, body = LedgerEntry, description = "This key was used before: the same line again"),
        (status = 404, description = "`authorization-not-found`"),
        (status = 409, description = "`already-captured`: refund it instead"),
        (status = 422, description = "`key-reused`"),
        (status = 503, description = "`processor-unavailable`: nothing was done; `outcome-unknown`: the same key will tell"),
    )
)]
async fn void(
    State(state): State<AppState>,
    context: CallContext,
    ApiJson(call): ApiJson<Void>,
) -> Result<Response, Problem> {
    make(&state, &context, Call::Void(call)).await
}

/// Give taken money back.
#[utoipa::path(
    post, path = "/v1/refunds", tag = "gateway", request_body = Refund,
    responses(
        (status = 201, body = LedgerEntry, description = "Given back"),
        (status = 200, body = LedgerEntry, description = "This key was used before: the same line again"),
        (status = 422, description = "`key-reused`, `currency-mismatch`, `over-refund` with `refundable`"),
        (status = 503, description = "`processor-unavailable`: nothing was done; `outcome-unknown`: the same key will tell"),
    )
)]
async fn refund(
    State(state): State<AppState>,
    context: CallContext,
    ApiJson(call): ApiJson<Refund>,
) -> Result<Response, Problem> {
    make(&state, &context, Call::Refund(call)).await
}

async fn make(state: &AppState, context: &CallContext, call: Call) -> Result<Response, Problem> {
    check_key(call.key())?;
    let reference = call.reference().as_str();
    state
        .faults
        .at(BEFORE_CHARGE, context)
        .scope(reference)
        .hit()
        .await?;
    let written = state.ledger.make(&call).await?;
    // From here on the money has moved. What goes wrong now is unknown to the merchant.
    state
        .faults
        .at(AFTER_CHARGE, context)
        .scope(reference)
        .hit()
        .await?;
    match written.manner {
        Manner::AtOnce => {}
        Manner::Late => tokio::time::sleep(state.late).await,
        Manner::Lost => context.drop_reply(),
    }
    if written.line.kind == EntryKind::Decline {
        return Err(error::declined());
    }
    let entry = Json(LedgerEntry::from(written.line));
    Ok(if written.replayed {
        ([(IDEMPOTENT_REPLAYED, "true")], entry).into_response()
    } else {
        (StatusCode::CREATED, entry).into_response()
    })
}

fn check_key(key: &str) -> Result<(), Problem> {
    if (1..=KEY_LEN_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err(Problem::invalid(
            "/key",
            "a key is 1 to 255 visible ASCII characters",
        ))
    }
}

/// What the ledger says of these references; those never heard of are left out.
#[utoipa::path(
    post, path = "/v1/ledger/lookup", tag = "gateway", request_body = LedgerLookup,
    responses(
        (status = 200, body = LedgerView),
        (status = 400, description = "`invalid-request`: more than 1,000 references"),
    )
)]
async fn lookup(
    State(state): State<AppState>,
    ApiJson(lookup): ApiJson<LedgerLookup>,
) -> Result<Json<LedgerView>, Problem> {
    if lookup.references.len() > REFERENCES_MAX {
        return Err(Problem::invalid(
            "/references",
            "up to 1000 references can be looked up at once",
        ));
    }
    let totals = state
        .ledger
        .totals(&lookup.references)
        .await
        .map_err(error::database)?;
    Ok(Json(LedgerView { totals }))
}

/// Every line of one reference, oldest first; none if the gateway never heard of it.
#[utoipa::path(
    get, path = "/v1/ledger/{reference}", tag = "gateway",
    params(("reference" = PaymentId, Path, description = "The payment's id")),
    responses((status = 200, body = Vec<LedgerEntry>))
)]
async fn lines(
    State(state): State<AppState>,
    ApiPath(reference): ApiPath<PaymentId>,
) -> Result<Json<Vec<LedgerEntry>>, Problem> {
    let lines = state.ledger.lines(&reference).await.map_err(error::database)?;
    Ok(Json(lines.into_iter().map(LedgerEntry::from).collect()))
}
