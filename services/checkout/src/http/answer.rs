//! What a buyer is answered once a purchase is over, and how that answer is given, the first time and again.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use service_kit::{FieldError, Problem, problem::MEDIA_TYPE};
use ticketing_types::PurchaseId;
use ticketing_types::checkout::PurchaseStatus;
use ticketing_types::header::IDEMPOTENT_REPLAYED;

use crate::domain::purchase::{FinalAnswer, Purchase};
use crate::domain::saga::Rejection;

/// The answer to a purchase that is over. `None` for the one that is not kept ("busy": the key may start again),
/// and for a cancelled one (its buyer was answered when it was completed).
pub(crate) fn answer_of(purchase: &Purchase) -> Option<FinalAnswer> {
    match purchase.saga.status() {
        PurchaseStatus::Completed => Some(FinalAnswer {
            http_status: StatusCode::CREATED.as_u16(),
            content_type: "application/json".to_owned(),
            body: serde_json::to_string(&purchase.view()).expect("a view is plain data with string keys"),
        }),
        PurchaseStatus::Rejected => {
            let problem = problem_of(purchase.saga.rejection()?)?;
            let problem = problem
                .instance(path(&purchase.id))
                .with("purchase_id", &purchase.id);
            Some(FinalAnswer {
                http_status: problem.status.as_u16(),
                content_type: MEDIA_TYPE.to_owned(),
                body: problem.to_json().to_string(),
            })
        }
        PurchaseStatus::Pending | PurchaseStatus::Cancelled => None,
    }
}

pub(super) fn problem_of(why: &Rejection) -> Option<Problem> {
    let (status, detail) = match why {
        Rejection::SoldOut { .. } => (StatusCode::CONFLICT, "not enough seats are free"),
        Rejection::LimitReached { detail, .. }
        | Rejection::UnknownEvent { detail }
        | Rejection::MixedCurrencies { detail } => (StatusCode::UNPROCESSABLE_ENTITY, detail.as_str()),
        Rejection::AmountOverflow { detail } => (StatusCode::BAD_REQUEST, detail.as_str()),
        Rejection::PaymentDeclined => (StatusCode::PAYMENT_REQUIRED, "the card was declined"),
        Rejection::HoldExpired => (
            StatusCode::CONFLICT,
            "the seats were held too long without a payment; nothing was charged",
        ),
        Rejection::Cancelled => (
            StatusCode::CONFLICT,
            "the purchase was called off; nothing was charged",
        ),
        Rejection::Refused { .. } => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "the purchase was refused; nothing was charged",
        ),
        Rejection::Busy => return None,
    };
    let problem = Problem::new(status, why.slug()).detail(detail);
    Some(match why {
        Rejection::SoldOut { lines } => problem.with("lines", lines),
        Rejection::LimitReached { event_id, limit, .. } => {
            problem.with("event_id", event_id).with("limit", limit)
        }
        Rejection::AmountOverflow { detail } => problem.with(
            "errors",
            [FieldError {
                pointer: "/items".to_owned(),
                reason: detail.clone(),
            }],
        ),
        _ => problem,
    })
}

/// Gives an answer: byte for byte as it was kept, and said to be a repeat when it is one.
pub(super) fn give(id: &PurchaseId, answer: FinalAnswer, replayed: bool) -> Response {
    // The book holds only statuses and types that this file has put there.
    let status = StatusCode::from_u16(answer.http_status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = HeaderValue::try_from(answer.content_type);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    if let Ok(content_type) = content_type {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    if status == StatusCode::CREATED {
        headers.insert(header::LOCATION, location(id));
    }
    if replayed {
        headers.insert(
            HeaderName::from_static(IDEMPOTENT_REPLAYED),
            HeaderValue::from_static("true"),
        );
    }
    response
}

/// Where a purchase can be looked at, as a header.
pub(super) fn location(id: &PurchaseId) -> HeaderValue {
    HeaderValue::try_from(path(id)).expect("an id is visible ASCII")
}

fn path(id: &PurchaseId) -> String {
    format!("/v1/purchases/{id}")
}
