//! Readiness, topology and the stream.

use std::time::Duration;

use axum::routing::get;
use axum::{Json, Router};
use boxoffice::Config;
use serde_json::{Value, json};

use crate::stub::{Door, Stub, config, leading_node};

#[tokio::test]
async fn the_front_door_is_ready_when_a_purchase_would_work() {
    let (a, node) = (Stub::echo("all"), Stub::with(leading_node(1)));
    let door = Door::open(Config {
        lock_nodes: vec![node.url()],
        ..config()
    })
    .await;
    let response = door.get("/readyz").await;
    assert_eq!(response.status(), 503);
    let one = || vec![a.url()];
    let door = Door::open(Config {
        checkout: one(),
        inventory: one(),
        billing: one(),
        gateway: a.url(),
        lock_nodes: vec![node.url()],
        ..config()
    })
    .await;
    testkit::eventually(Duration::from_secs(10), "ready", async || {
        (door.get("/readyz").await.status() == 200).then_some(())
    })
    .await;
    let topology = door.json("/v1/topology").await;
    assert_eq!(
        (&topology["cluster"]["leader"], &topology["cluster"]["term"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(topology["services"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn the_stream_tells_what_changes_and_ends_with_the_front_door() {
    let event = |available: i64| json!({"id": "gala", "name": "Gala", "capacity": 2, "available": available});
    let inventory = Stub::with(Router::new().route("/v1/events/gala", get(async move || Json(event(2)))));
    let node = Stub::with(leading_node(1));
    let config = Config {
        inventory: vec![inventory.url()],
        lock_nodes: vec![node.url()],
        ..config()
    };
    let door = Door::open(config).await;
    let mut stream = door.get("/v1/stream?event_id=gala").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");

    let mut text = String::new();
    let told = |text: &str, name: &str| -> Option<Value> {
        let data = text
            .split(&format!("event: {name}\ndata: "))
            .last()
            .filter(|_| text.contains(name))?;
        serde_json::from_str(data.split('\n').next()?).ok()
    };
    let holder = |text: &str| Some(told(text, "locks")?[0]["holder"]["fencing_token"].as_u64()? == 7);
    let read = async {
        while told(&text, "stock").is_none() || holder(&text).is_none() || told(&text, "topology").is_none() {
            let chunk = stream
                .chunk()
                .await
                .expect("a chunk")
                .expect("the stream goes on");
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    tokio::time::timeout(Duration::from_secs(10), read)
        .await
        .expect("everything is told in time");
    assert_eq!(
        told(&text, "stock").map(|stock| stock["available"].clone()),
        Some(json!(2))
    );
    assert_eq!(
        text.matches("event: stock").count(),
        1,
        "what has not changed is not told again"
    );

    let closing = door.close();
    let (rest, ()) = tokio::time::timeout(Duration::from_secs(3), async {
        tokio::join!(async { while let Ok(Some(_)) = stream.chunk().await {} }, closing)
    })
    .await
    .expect("an open stream does not hold up the end");
    rest
}
