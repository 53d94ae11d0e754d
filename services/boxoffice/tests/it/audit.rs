//! The audit over books that stand-ins keep.

use axum::routing::{get, post};
use axum::{Json, Router};
use boxoffice::Config;
use serde_json::{Value, json};

use crate::stub::{Door, Stub, config, nobody};

const THEN: &str = "2026-11-30T12:00:00Z";

fn inventory() -> Stub {
    let event = json!({"id": "gala", "name": "Gala", "capacity": 1, "price": {"amount_minor": 5000, "currency": "EUR"},
        "available": 0, "held": 0, "sold": 1, "oversold": 0, "availability": "sold_out", "created_at": THEN});
    let hold = json!({"id": "p-1", "status": "confirmed", "quantity": 1, "tickets": 1, "expires_at": THEN,
        "strategy": "raft", "fencing_token": 7});
    let records =
        json!({"event": event, "holds": [hold], "stale_tokens_rejected": 2, "accepted_tokens": [7]});
    let not_found = (
        axum::http::StatusCode::NOT_FOUND,
        [("content-type", "application/problem+json")],
        r#"{"type":"/problems/not-found","title":"Not found","status":404,"detail":"no such event"}"#,
    );
    Stub::with(
        Router::new()
            .route(
                "/v1/audit-records/gala",
                get(move || async move { Json(records) }),
            )
            .fallback(get(move || async move { not_found })),
    )
}

fn checkout() -> Stub {
    let purchase = json!({"id": "p-1", "buyer": "alice", "idempotency_key": "k", "status": "completed",
        "reason": null, "amount_minor": 5000, "quantity": 1, "quantity_all": 1, "strategy": "raft",
        "payment_key": "stable", "created_at": THEN, "updated_at": THEN});
    let records = json!({"purchases": [purchase], "stale_tokens_rejected": 0});
    Stub::with(Router::new().route(
        "/v1/audit-records/{id}",
        get(move || async move { Json(records) }),
    ))
}

fn billing() -> Stub {
    let records = json!({"payments": [{"id": "p-1", "status": "captured", "captured_minor": 5000,
        "refunded_minor": 0}], "stale_tokens_rejected": 0});
    Stub::with(Router::new().route("/v1/audit-records", post(move || async move { Json(records) })))
}

fn gateway(captures: i64) -> Stub {
    let answer = async move |Json(lookup): Json<Value>| {
        assert_eq!(
            lookup["references"],
            json!(["p-1"]),
            "a purchase and its hold are asked for once"
        );
        Json(
            json!({"totals": [{"reference": "p-1", "authorizations": captures, "captures": captures,
            "captured_minor": 5000 * captures, "refunded_minor": 0}]}),
        )
    };
    Stub::with(Router::new().route("/v1/ledger/lookup", post(answer)))
}

async fn door(inventory: &Stub, checkout: &Stub, billing: &Stub, gateway: String) -> Door {
    Door::open(Config {
        inventory: vec![inventory.url()],
        checkout: vec![checkout.url()],
        billing: vec![billing.url()],
        gateway,
        ..config()
    })
    .await
}

#[tokio::test]
async fn four_books_that_agree_pass() {
    let (inventory, checkout, billing, gateway) = (inventory(), checkout(), billing(), gateway(1));
    let door = door(&inventory, &checkout, &billing, gateway.url()).await;
    let report = door.json("/v1/audit/gala").await;
    assert_eq!(report["verdict"], "pass", "{report:#}");
    assert_eq!((&report["sold"], &report["charged"]), (&json!(1), &json!(1)));
    assert_eq!(report["stale_tokens_rejected"], 2);
    assert_eq!(
        report["invariants"]["I2"]["detail"],
        "1 of 1 seats sold, all to finished purchases"
    );
}

#[tokio::test]
async fn a_second_capture_in_the_ledger_alone_is_found() {
    let (inventory, checkout, billing, gateway) = (inventory(), checkout(), billing(), gateway(2));
    let door = door(&inventory, &checkout, &billing, gateway.url()).await;
    let report = door.json("/v1/audit/gala").await;
    assert_eq!(report["double_charged"], 1);
    assert_eq!(report["invariants"]["I3"]["verdict"], "fail");
    assert_eq!(report["verdict"], "fail");
}

#[tokio::test]
async fn a_ledger_out_of_reach_leaves_the_money_unknown() {
    let (inventory, checkout, billing) = (inventory(), checkout(), billing());
    let door = door(&inventory, &checkout, &billing, nobody()).await;
    let report = door.json("/v1/audit/gala").await;
    assert_eq!(report["verdict"], "unknown", "{report:#}");
    assert_eq!(report["invariants"]["I1"]["verdict"], "pass");
    assert_eq!(report["invariants"]["I3"]["verdict"], "unknown");
}

#[tokio::test]
async fn an_event_that_nobody_knows_is_404() {
    let (inventory, checkout, billing, gateway) = (inventory(), checkout(), billing(), gateway(1));
    let door = door(&inventory, &checkout, &billing, gateway.url()).await;
    let response = door.get("/v1/audit/nothing").await;
    assert_eq!(response.status(), 404);
    let problem: Value = response.json().await.expect("a problem");
    assert_eq!(problem["type"], "/problems/not-found");
    assert_eq!(door.get("/v1/audit/NOT-AN-ID").await.status(), 400);
}
