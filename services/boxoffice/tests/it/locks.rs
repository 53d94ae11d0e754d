//! The door to the lock cluster: who leads, and names that are taken literally.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use boxoffice::Config;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::stub::{Door, Stub, config, leading_node, nobody};

#[tokio::test]
async fn the_lock_leader_is_found_and_remembered() {
    let leader = Stub::with(leading_node(2));
    let named = json!({"type": "/problems/not-leader", "status": 421,
        "leader": {"id": 2, "client_url": leader.url()}});
    let routes = move || {
        let named = named.to_string();
        Router::new().fallback(any(move || async move {
            (
                StatusCode::MISDIRECTED_REQUEST,
                [("content-type", "application/problem+json")],
                named,
            )
        }))
    };
    let follower = Stub::with(routes());
    let lock_nodes = vec![follower.url(), nobody(), leader.url()];
    let door = Door::open(Config {
        lock_nodes,
        ..config()
    })
    .await;
    for at in 0..3 {
        let answer = door
            .http
            .put(door.url(&format!("/v1/sessions/s-{at}")))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(
        (follower.count("PUT"), leader.count("PUT")),
        (1, 3),
        "asked once, then remembered"
    );
}

#[tokio::test]
async fn without_a_leader_the_lock_cluster_is_busy() {
    let electing = || {
        Router::new().fallback(any(|| async {
            let problem = r#"{"type":"/problems/no-leader","status":503}"#;
            (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")], problem)
        }))
    };
    let (one, two) = (Stub::with(electing()), Stub::with(electing()));
    let door = Door::open(Config {
        lock_nodes: vec![one.url(), two.url()],
        ..config()
    })
    .await;
    let response = door.get("/v1/locks/demo").await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert!(
        one.count("GET /v1/locks/demo") > 0 && two.count("GET /v1/locks/demo") > 0,
        "both were asked"
    );
}

#[tokio::test]
async fn a_wait_that_timed_out_is_not_tried_elsewhere() {
    let timed_out = || {
        Router::new().fallback(any(|| async {
            let problem = r#"{"type":"/problems/lock-wait-timeout","status":503}"#;
            (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")], problem)
        }))
    };
    let (one, two) = (Stub::with(timed_out()), Stub::with(timed_out()));
    let door = Door::open(Config {
        lock_nodes: vec![one.url(), two.url()],
        ..config()
    })
    .await;
    let answer = door
        .http
        .post(door.url("/v1/sessions/s/acquisitions"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.status(), 503);
    assert_eq!(one.count("POST") + two.count("POST"), 1);
}

#[tokio::test]
async fn the_name_of_a_lock_is_taken_literally() {
    let node = Stub::with(leading_node(1));
    let door = Door::open(Config {
        lock_nodes: vec![node.url()],
        ..config()
    })
    .await;
    // By hand: a client library would tidy the path up.
    let mut wire = tokio::net::TcpStream::connect(door.addr)
        .await
        .expect("a connection");
    let request = "GET /v1/locks/a/../%2e%2e/b%2Fc HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    wire.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    wire.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(node.count("GET /v1/locks/a/../%2e%2e/b%2Fc"), 1);
}
