//! Who gets a request, and who gets it next.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use boxoffice::Config;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::stub::{Door, Mode, Stub, config, nobody};

async fn two_inventories() -> (Stub, Stub, Door) {
    let (a, b) = (Stub::echo("a"), Stub::echo("b"));
    let door = Door::open(Config {
        inventory: vec![a.url(), b.url()],
        ..config()
    })
    .await;
    (a, b, door)
}

#[tokio::test]
async fn requests_are_spread_over_the_instances() {
    let (a, b, door) = two_inventories().await;
    for _ in 0..60 {
        assert_eq!(door.get("/v1/events").await.status(), 200);
    }
    let (a, b) = (a.count("GET /v1/events"), b.count("GET /v1/events"));
    assert_eq!(a + b, 60);
    assert!(a > 5 && b > 5, "{a} and {b}");
}

#[tokio::test]
async fn a_request_and_its_answer_pass_as_they_are() {
    let (a, b, door) = two_inventories().await;
    b.stop().await;
    let response = door
        .http
        .put(door.url("/v1/holds/h-1?x=a%20b"))
        .header("lock-strategy", "none")
        .header("connection", "close, x-secret")
        .header("x-secret", "1")
        .body("{\"some\": \"body\"}")
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.headers()["served-by"], "a");
    assert!(
        !response.headers().contains_key("x-hop"),
        "about the connection behind, not about this one"
    );
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(answer["uri"], "/v1/holds/h-1?x=a%20b");
    assert_eq!(answer["body"], "{\"some\": \"body\"}");
    let hit = a
        .hits()
        .into_iter()
        .find(|hit| hit.line.starts_with("PUT"))
        .expect("it arrived");
    assert_eq!(hit.headers["lock-strategy"], "none");
    assert_eq!(
        hit.headers["host"].to_str().ok(),
        Some(a.addr.to_string().as_str())
    );
    assert!(
        hit.headers.contains_key("traceparent"),
        "a trace begins at the front door"
    );
    assert!(!hit.headers.contains_key("x-secret"));
}

#[tokio::test]
async fn an_instance_that_is_gone_is_passed_over_and_comes_back() {
    let (a, b, door) = two_inventories().await;
    let (addr, url) = (a.addr, a.url());
    door.sees(&url, "up").await;
    a.stop().await;
    for _ in 0..30 {
        let answer = door
            .http
            .post(door.url("/v1/events"))
            .body("x")
            .send()
            .await
            .expect("an answer");
        assert_eq!(
            answer.status(),
            200,
            "what was never sent may go elsewhere, a bare POST too"
        );
    }
    door.sees(&url, "down").await;
    let a = Stub::at(addr, Router::new().fallback(any(|| async { "a" })));
    door.sees(&url, "up").await;
    testkit::eventually(Duration::from_secs(10), "it gets requests again", async || {
        door.get("/v1/events").await;
        (a.count("GET /v1/events") > 0).then_some(())
    })
    .await;
    assert!(b.count("POST /v1/events") == 30);
}

#[tokio::test]
async fn after_a_lost_answer_only_what_is_safe_is_sent_again() {
    let (a, b, door) = two_inventories().await;
    a.set(Mode::LosesAnswers);
    b.set(Mode::Unready); // so that `a` is asked first
    door.sees(&b.url(), "unready").await;
    let send = |method: reqwest::Method, key: Option<&'static str>| {
        let mut request = door.http.request(method, door.url("/v1/holds/h-1"));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        async move { request.send().await.expect("an answer") }
    };
    assert_eq!(
        send(reqwest::Method::PUT, None).await.status(),
        200,
        "an id makes it safe"
    );
    assert_eq!(
        send(reqwest::Method::POST, Some("k")).await.status(),
        200,
        "a key makes it safe"
    );
    assert_eq!(
        (a.count("PUT"), b.count("PUT"), a.count("POST"), b.count("POST")),
        (1, 1, 1, 1)
    );

    let unknown = send(reqwest::Method::POST, None).await;
    assert_eq!(unknown.status(), 503);
    assert!(unknown.headers().contains_key("retry-after"));
    let problem: Value = unknown.json().await.expect("a problem");
    assert_eq!(problem["type"], "/problems/outcome-unknown");
    assert_eq!(
        (a.count("POST"), b.count("POST")),
        (2, 1),
        "not sent a second time"
    );
}

#[tokio::test]
async fn what_was_sent_and_lost_stays_unknown_when_nobody_else_is_there() {
    let a = Stub::echo("a");
    a.set(Mode::LosesAnswers);
    let door = Door::open(Config {
        inventory: vec![a.url(), nobody()],
        ..config()
    })
    .await;
    door.sees(&nobody(), "down").await;
    let answer = door
        .http
        .put(door.url("/v1/holds/h"))
        .send()
        .await
        .expect("an answer");
    let problem: Value = answer.json().await.expect("a problem");
    assert_eq!(problem["type"], "/problems/outcome-unknown", "{problem}");
}

#[tokio::test]
async fn with_nobody_there_the_answer_is_503_and_when_to_come_back() {
    let door = Door::open(config()).await;
    for (path, slug) in [
        ("/v1/events", "inventory-unavailable"),
        ("/v1/purchases/p", "checkout-unavailable"),
        ("/v1/payments/p", "billing-unavailable"),
        ("/v1/locks", "lock-cluster-unavailable"),
    ] {
        let response = door.get(path).await;
        assert_eq!(response.status(), 503, "{path}");
        assert!(response.headers().contains_key("retry-after"), "{path}");
        let problem: Value = response.json().await.expect("a problem");
        assert_eq!(problem["type"], format!("/problems/{slug}"));
        assert_eq!(problem["instance"], path);
    }
}

#[tokio::test]
async fn each_path_has_one_owner_and_the_rest_is_404() {
    let (checkout, billing) = (Stub::echo("checkout"), Stub::echo("billing"));
    let config = Config {
        checkout: vec![checkout.url()],
        billing: vec![billing.url()],
        ..config()
    };
    let door = Door::open(config).await;
    assert_eq!(door.json("/v1/purchases/p-1").await["by"], "checkout");
    assert_eq!(door.json("/v1/payments/p-1").await["by"], "billing");
    for path in [
        "/v1/audit-records/gala",
        "/v1/nothing",
        "/nothing",
        "/v1/purchasesx",
    ] {
        let response = door.get(path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
}

#[tokio::test]
async fn a_refusal_passes_with_its_words_and_headers() {
    let busy = || async {
        let headers = [("retry-after", "3"), ("content-type", "application/problem+json")];
        (
            StatusCode::CONFLICT,
            headers,
            r#"{"type":"/problems/purchase-in-progress"}"#,
        )
            .into_response()
    };
    let checkout = Stub::with(Router::new().route("/v1/purchases", post(busy)));
    let door = Door::open(Config {
        checkout: vec![checkout.url()],
        ..config()
    })
    .await;
    let response = door
        .http
        .post(door.url("/v1/purchases"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (409, &"3".parse().expect("3"))
    );
    assert_eq!(
        response.text().await.expect("a body"),
        r#"{"type":"/problems/purchase-in-progress"}"#
    );
}

#[tokio::test]
async fn a_body_over_64_kib_stops_at_the_door() {
    let (a, b, door) = two_inventories().await;
    let large = door
        .http
        .post(door.url("/v1/events"))
        .body(vec![b' '; 1_000_000])
        .send()
        .await
        .expect("an answer");
    assert_eq!(large.status(), 413);
    assert_eq!(a.count("POST") + b.count("POST"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_wait_side_by_side() {
    service_kit::limits::raise_nofile();
    // No answer before all have arrived: a line anywhere, and nobody would ever be answered.
    let all_here = Arc::new(Barrier::new(1000));
    let routes = || {
        let all_here = Arc::clone(&all_here);
        Router::new().route(
            "/v1/purchases",
            post(move || async move {
                all_here.wait().await;
                StatusCode::CREATED
            }),
        )
    };
    let (a, b) = (Stub::with(routes()), Stub::with(routes()));
    let door = Door::open(Config {
        checkout: vec![a.url(), b.url()],
        ..config()
    })
    .await;
    let requests = (0..1000).map(|_| {
        let request = door
            .http
            .post(door.url("/v1/purchases"))
            .header("idempotency-key", "k");
        tokio::spawn(async move { request.send().await.expect("an answer").status().as_u16() })
    });
    let requests: Vec<_> = requests.collect();
    for request in requests {
        assert_eq!(request.await.expect("no panic"), 201);
    }
    let (a, b) = (a.count("POST"), b.count("POST"));
    assert!(
        a + b == 1000 && a.abs_diff(b) < 200,
        "the less loaded one gets the next: {a} and {b}"
    );
}

#[tokio::test]
async fn a_fault_is_armed_on_every_instance_of_its_service() {
    let board = || {
        let point = json!({"point": "inventory.critical-section", "hits": 2, "fired": 1,
            "rule": {"effect": "delay=5ms", "percent": 100, "seed": 0}});
        let board = json!({"enabled": true, "points": [point]});
        Router::new()
            .route("/v1/faults", get(move || async move { axum::Json(board) }))
            .route(
                "/v1/faults/{*point}",
                any(|| async { axum::Json(json!({"enabled": true, "points": []})) }),
            )
    };
    let (a, b) = (Stub::with(board()), Stub::with(board()));
    let door = Door::open(Config {
        inventory: vec![a.url(), b.url()],
        ..config()
    })
    .await;
    let arm = |point: &str| {
        let request = door.http.put(door.url(&format!("/v1/faults/{point}")));
        let request = request
            .header("content-type", "application/json")
            .body(r#"{"effect":"delay=5ms"}"#);
        async move { request.send().await.expect("an answer") }
    };
    assert_eq!(arm("inventory.critical-section").await.status(), 200);
    assert_eq!(
        (
            a.count("PUT /v1/faults/inventory.critical-section"),
            b.count("PUT")
        ),
        (1, 1)
    );

    let shown = door.json("/v1/faults").await;
    assert_eq!(shown["points"][0]["hits"], 4, "{shown}");
    assert_eq!(shown["points"][0]["armed"], 2);
    assert_eq!(
        shown["unreachable"].as_array().map(Vec::len),
        Some(4),
        "checkout, billing, gateway, lock"
    );

    let unknown = arm("kitchen.sink").await;
    assert_eq!(unknown.status(), 404);
    let problem: Value = unknown.json().await.expect("a problem");
    assert_eq!(problem["type"], "/problems/unknown-fault-point");
}
