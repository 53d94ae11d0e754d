//! The rules of DESIGN §5.2 and §5.3, as far as checkout can see them: the same id again is the same answer, an
//! undone id is closed.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Hold, HoldState, PRICE_MINOR, Payment, PaymentState, World, problem};

pub(super) async fn place_hold(
    State(world): State<World>,
    Path(id): Path<String>,
    Json(wish): Json<Value>,
) -> Response {
    let lines = wish["items"].as_array().unwrap();
    if lines.iter().any(|line| line["event_id"] == "nowhere") {
        return problem(
            422,
            "unknown-event",
            json!({ "detail": "there is no event nowhere" }),
        );
    }
    let quantity: i64 = lines.iter().map(|line| line["quantity"].as_i64().unwrap()).sum();
    let mut book = world.book();
    match book.holds.get(&id).map(|hold| hold.state) {
        Some(HoldState::Placed | HoldState::Confirmed) => {}
        Some(HoldState::Released) => return problem(409, "hold-closed", json!({})),
        Some(HoldState::Expired) => return problem(409, "hold-expired", json!({})),
        None if book.stock < quantity => {
            let line = json!({
                "event_id": lines[0]["event_id"], "requested": quantity, "available": book.stock, "may_return": false,
            });
            return problem(409, "sold-out", json!({ "lines": [line] }));
        }
        None => {
            book.stock -= quantity;
            let state = HoldState::Placed;
            book.holds.insert(id.clone(), Hold { state, quantity });
        }
    }
    let amount = json!({ "amount_minor": quantity * PRICE_MINOR, "currency": "EUR" });
    let timings = json!({ "lock_wait_ms": 2.0, "section_ms": 1.0 });
    Json(json!({
        "id": id, "items": lines, "amount": amount, "expires_at": "2100-01-01T00:00:00Z", "timings": timings,
    }))
    .into_response()
}

pub(super) async fn confirm_hold(State(world): State<World>, Path(id): Path<String>) -> Response {
    let mut book = world.book();
    match book.holds.get_mut(&id) {
        Some(hold) if matches!(hold.state, HoldState::Placed | HoldState::Confirmed) => {
            hold.state = HoldState::Confirmed;
            let tickets: Vec<_> = (0..hold.quantity)
                .map(|n| json!({ "id": format!("{id}-{n}"), "event_id": "gala" }))
                .collect();
            Json(json!({ "id": id, "tickets": tickets })).into_response()
        }
        Some(hold) if hold.state == HoldState::Released => problem(409, "hold-closed", json!({})),
        Some(_) => problem(409, "hold-expired", json!({})),
        None => problem(404, "hold-not-found", json!({})),
    }
}

pub(super) async fn release_hold(State(world): State<World>, Path(id): Path<String>) -> Response {
    let mut book = world.book();
    let released = Hold {
        state: HoldState::Released,
        quantity: 0,
    };
    let hold = book.holds.entry(id).or_insert(released);
    match hold.state {
        HoldState::Confirmed => return problem(409, "hold-confirmed", json!({})),
        HoldState::Placed => {
            hold.state = HoldState::Released;
            let returned = hold.quantity;
            book.stock += returned;
        }
        HoldState::Released | HoldState::Expired => {}
    }
    StatusCode::NO_CONTENT.into_response()
}

pub(super) async fn authorize(
    State(world): State<World>,
    Path(id): Path<String>,
    Json(wish): Json<Value>,
) -> Response {
    let mut book = world.book();
    let declined = wish["card"] == "card_declined";
    let payment = book.payments.entry(id.clone()).or_insert(Payment {
        state: if declined {
            PaymentState::Declined
        } else {
            PaymentState::Authorized
        },
        amount_minor: wish["amount"]["amount_minor"].as_i64().unwrap(),
        captures: 0,
        refunded_minor: 0,
    });
    match payment.state {
        PaymentState::Declined => problem(402, "payment-declined", json!({})),
        PaymentState::Voided => problem(409, "payment-voided", json!({})),
        PaymentState::Authorized => view(&id, "authorized"),
        PaymentState::Captured => view(&id, "captured"),
    }
}

pub(super) async fn capture(State(world): State<World>, Path(id): Path<String>) -> Response {
    let mut book = world.book();
    match book.payments.get_mut(&id) {
        Some(payment) if payment.state == PaymentState::Authorized => {
            payment.state = PaymentState::Captured;
            payment.captures += 1;
            view(&id, "captured")
        }
        Some(payment) if payment.state == PaymentState::Captured => view(&id, "captured"),
        _ => problem(409, "payment-not-authorized", json!({})),
    }
}

pub(super) async fn void(State(world): State<World>, Path(id): Path<String>) -> Response {
    let mut book = world.book();
    let payment = book.payments.entry(id.clone()).or_insert(Payment {
        state: PaymentState::Voided,
        amount_minor: 0,
        captures: 0,
        refunded_minor: 0,
    });
    if payment.state == PaymentState::Captured {
        return problem(409, "payment-captured", json!({}));
    }
    payment.state = PaymentState::Voided;
    view(&id, "voided")
}

pub(super) async fn refund(
    State(world): State<World>,
    Path(id): Path<String>,
    Json(wish): Json<Value>,
) -> Response {
    let mut book = world.book();
    let payment = book.payments.get_mut(&id).unwrap();
    assert_eq!(payment.state, PaymentState::Captured);
    // A repeat names the same refund: full refunds are the only ones asked for here.
    payment.refunded_minor = wish["amount"]["amount_minor"].as_i64().unwrap();
    Json(json!({ "id": wish["id"], "payment_id": id, "amount": wish["amount"], "refundable_minor": 0 }))
        .into_response()
}

fn view(id: &str, status: &str) -> Response {
    let timings = json!({ "lock_wait_ms": 1.0, "section_ms": 1.0 });
    let created_at = "2026-01-01T00:00:00Z";
    Json(json!({
        "id": id, "status": status, "refunded_minor": 0, "created_at": created_at, "timings": timings,
    }))
    .into_response()
}
