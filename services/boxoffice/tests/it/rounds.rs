//! Rounds over HTTP. What a round does is tested in the crate `buyers`; here: begun, shown, one at a time.

use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use boxoffice::Config;
use serde_json::{Value, json};

use crate::stub::{Door, Stub, config};

async fn start(door: &Door, body: Value) -> (u16, Option<String>, Value) {
    let response = door
        .http
        .post(door.url("/v1/rounds"))
        .json(&body)
        .send()
        .await
        .expect("an answer");
    let location = response
        .headers()
        .get("location")
        .and_then(|v| v.to_str().ok())
        .map(str::to_owned);
    (
        response.status().as_u16(),
        location,
        response.json().await.expect("JSON"),
    )
}

fn round(strategy: &str) -> Value {
    json!({"strategy": strategy, "capacity": 1, "buyers": 2, "retry_storm": false})
}

#[tokio::test]
async fn a_second_round_waits_for_the_first() {
    // Nobody can create the event, so the first round goes on trying.
    let door = Door::open(config()).await;
    let (status, location, begun) = start(&door, round("raft")).await;
    assert_eq!((status, &begun["status"]), (202, &json!("running")));
    let location = location.expect("where to look");
    assert_eq!(door.json(&location).await["id"], begun["id"]);

    let (status, _, problem) = start(&door, round("none")).await;
    assert_eq!(
        (status, &problem["type"]),
        (409, &json!("/problems/round-running"))
    );
    assert_eq!(problem["round"], begun["id"]);
    assert_eq!(
        door.json("/v1/rounds").await["rounds"].as_array().map(Vec::len),
        Some(1)
    );
    door.close().await; // does not wait for the round's patience to end
}

#[tokio::test]
async fn a_strategy_that_is_not_available_is_skipped_with_its_reason() {
    let create = async |Json(event): Json<Value>| {
        let view = json!({"id": event["id"], "name": event["name"], "capacity": 1, "price": event["price"],
            "available": 1, "held": 0, "sold": 0, "oversold": 0, "availability": "available",
            "created_at": "2026-11-30T12:00:00Z"});
        (StatusCode::CREATED, Json(view))
    };
    let refuse = async || {
        let problem = r#"{"type":"/problems/strategy-unavailable","status":503,"detail":"no Redis here"}"#;
        (
            StatusCode::SERVICE_UNAVAILABLE,
            [("content-type", "application/problem+json")],
            problem,
        )
    };
    let inventory = Stub::with(Router::new().route("/v1/events", post(create)));
    let checkout = Stub::with(Router::new().route("/v1/purchases", post(refuse)));
    let config = Config {
        inventory: vec![inventory.url()],
        checkout: vec![checkout.url()],
        ..config()
    };
    let door = Door::open(config).await;
    let (_, location, _) = start(&door, round("redis")).await;
    let location = location.expect("where to look");
    testkit::eventually(Duration::from_secs(10), "the round is over", async || {
        (door.json(&location).await["status"] == "skipped").then_some(())
    })
    .await;
    assert_eq!(door.json(&location).await["detail"], "no Redis here");
}

#[tokio::test]
async fn a_round_that_cannot_be_is_refused() {
    let door = Door::open(config()).await;
    let (status, _, problem) = start(&door, round("mutex")).await;
    assert_eq!(
        (status, &problem["type"]),
        (400, &json!("/problems/unknown-strategy"))
    );
    let (status, _, problem) = start(&door, json!({"strategy": "raft", "capacity": 1001, "buyers": 0})).await;
    assert_eq!(
        (status, &problem["type"]),
        (400, &json!("/problems/invalid-request"))
    );
    assert_eq!(problem["errors"][0]["pointer"], "/capacity");
    let (status, _, _) = start(
        &door,
        json!({"strategy": "raft", "capacity": "many", "buyers": 1}),
    )
    .await;
    assert_eq!(status, 400);
    assert_eq!(door.get("/v1/rounds/round-0").await.status(), 404);
}
