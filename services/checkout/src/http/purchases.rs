//! `/v1/purchases`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use service_kit::{ApiJson, ApiPath, ApiQuery, CallContext, IdempotencyKey, Problem};
use ticketing_types::checkout::{BuyTickets, PurchaseList, PurchaseStatus, PurchaseView};
use ticketing_types::{Buyer, PurchaseId};
use tracing::Span;

use super::answer;
use super::error::{RETRY_AFTER, database, not_found};
use crate::domain::buy::Bought;
use crate::domain::checkout::Checkout;
use crate::domain::purchase::Order;

/// Most purchases that one list shows.
const LIST_LIMIT_MAX: u32 = 100;
/// How many it shows when nothing is said.
const LIST_LIMIT_DEFAULT: u32 = 20;

/// Buy tickets: all of the cart or nothing. The same key again is the same purchase.
#[utoipa::path(
    post, path = "/v1/purchases", tag = "checkout", request_body = BuyTickets,
    params(
        ("Idempotency-Key" = String, Header, description = "1 to 255 visible ASCII characters, quoted or bare; new for each purchase, the same for each retry of it"),
        ("Lock-Strategy" = Option<String>, Header, description = "How critical sections are guarded"),
        ("Payment-Key" = Option<String>, Header, description = "`stable` or `fresh`"),
    ),
    responses(
        (status = 201, body = PurchaseView, description = "Bought and paid"),
        (status = 202, body = PurchaseView, description = "Not known yet; it goes on by itself, look at `Location`"),
        (status = 400, description = "`invalid-request`, `idempotency-key-missing`, `idempotency-key-invalid`, `unknown-strategy`"),
        (status = 402, description = "`payment-declined`"),
        (status = 409, description = "`sold-out` with `lines`; `hold-expired`; `purchase-cancelled`; `purchase-in-progress`: the same request is being worked on"),
        (status = 422, description = "`idempotency-key-reused`, `limit-reached`, `unknown-event`, `mixed-currencies`; `purchase-refused`: by a service, for a reason of its own"),
        (status = 503, description = "`busy`, `database-busy`, `lock-wait-timeout`, `lock-unavailable`, `strategy-unavailable`: nothing happened, the same key may \
                                      come again; `outcome-unknown`: it may be under way, the same key will tell"),
    )
)]
pub(super) async fn buy(
    State(checkout): State<Checkout>,
    context: CallContext,
    key: IdempotencyKey,
    ApiJson(wish): ApiJson<BuyTickets>,
) -> Result<Response, Problem> {
    let order = Order::new(wish, &key);
    Ok(match checkout.buy(order, context).await? {
        Bought::Answered { id, answer, replayed } => {
            Span::current().record("purchase.id", id.as_str());
            answer::give(&id, answer, replayed)
        }
        Bought::UnderWay(view) => {
            Span::current().record("purchase.id", view.id.as_str());
            under_way(*view)
        }
    })
}

/// What the list shows.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Only this buyer's.
    buyer: Option<Buyer>,
    /// At most this many, 1 to 100.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// The newest purchases.
#[utoipa::path(
    get, path = "/v1/purchases", tag = "checkout", params(ListQuery),
    responses((status = 200, body = PurchaseList), (status = 400, description = "`invalid-request`"))
)]
pub(super) async fn list(
    State(checkout): State<Checkout>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<PurchaseList>, Problem> {
    let limit = query.limit.unwrap_or(LIST_LIMIT_DEFAULT);
    if !(1..=LIST_LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(
            "/limit",
            "a limit is a whole number from 1 to 100",
        ));
    }
    let purchases = checkout
        .store()
        .list(query.buyer.as_ref(), limit)
        .await
        .map_err(database)?;
    let purchases = purchases.iter().map(|purchase| purchase.view()).collect();
    Ok(Json(PurchaseList { purchases }))
}

/// How a purchase stands.
#[utoipa::path(
    get, path = "/v1/purchases/{id}", tag = "checkout",
    params(("id" = PurchaseId, Path, description = "The purchase")),
    responses((status = 200, body = PurchaseView), (status = 404, description = "`purchase-not-found`"))
)]
pub(super) async fn get(
    State(checkout): State<Checkout>,
    ApiPath(id): ApiPath<PurchaseId>,
) -> Result<Json<PurchaseView>, Problem> {
    let purchase = checkout.store().get(&id).await.map_err(database)?;
    Ok(Json(purchase.ok_or_else(not_found)?.view()))
}

/// Call a purchase off. Before the tickets exist it is undone; afterwards the money is given back in full, and
/// the seats are not sold again.
#[utoipa::path(
    post, path = "/v1/purchases/{id}/cancel", tag = "checkout",
    params(("id" = PurchaseId, Path, description = "The purchase")),
    responses(
        (status = 200, body = PurchaseView, description = "It is `cancelled`, or had been `rejected`"),
        (status = 202, body = PurchaseView, description = "It will be; look again at `Location`"),
        (status = 404, description = "`purchase-not-found`"),
    )
)]
pub(super) async fn cancel(
    State(checkout): State<Checkout>,
    context: CallContext,
    ApiPath(id): ApiPath<PurchaseId>,
) -> Result<Response, Problem> {
    Span::current().record("purchase.id", id.as_str());
    let view = checkout.cancel(&id, context).await?;
    Ok(match view.status {
        PurchaseStatus::Pending => under_way(view),
        PurchaseStatus::Completed | PurchaseStatus::Rejected | PurchaseStatus::Cancelled => {
            Json(view).into_response()
        }
    })
}

/// 202: it is not over, where to look, and when.
fn under_way(view: PurchaseView) -> Response {
    let seconds = HeaderValue::from(Duration::as_secs(&RETRY_AFTER));
    let headers = [
        (header::LOCATION, answer::location(&view.id)),
        (header::RETRY_AFTER, seconds),
    ];
    (StatusCode::ACCEPTED, headers, Json(view)).into_response()
}
