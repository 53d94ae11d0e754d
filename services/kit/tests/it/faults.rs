//! Faults over HTTP.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use axum::{Router, routing::post};
use serde_json::{Value, json};
use service_kit::{CallContext, Faults, Problem, Readiness, http_client};

use crate::support::{Demo, start_with};

/// A service that counts its work and reaches a fault point after it.
fn demo(enabled: bool) -> (Demo, Arc<AtomicU32>) {
    let faults = Faults::new(enabled, &["demo.after-work"]);
    let done = Arc::new(AtomicU32::new(0));
    let work = {
        let (faults, done) = (faults.clone(), done.clone());
        move |ctx: CallContext| async move {
            done.fetch_add(1, SeqCst);
            faults.hit("demo.after-work", &ctx).await?;
            Ok::<_, Problem>("done")
        }
    };
    (
        start_with(Router::new().route("/work", post(work)), Readiness::new(), faults),
        done,
    )
}

#[tokio::test]
async fn a_dropped_reply_is_no_status_but_a_broken_connection_and_the_work_is_done() {
    let (demo, done) = demo(true);
    let request = http_client()
        .post(format!("{}/work", demo.url))
        .header("fault", "demo.after-work=drop-reply");
    let error = request.send().await.expect_err("no answer");
    assert!(error.is_request() && !error.is_connect(), "{error:?}");
    assert_eq!(done.load(SeqCst), 1);
}

#[tokio::test]
async fn the_board_arms_shows_and_disarms_a_point() {
    let (demo, _) = demo(true);
    let http = http_client();
    let point = format!("{}/v1/faults/demo.after-work", demo.url);
    let rule = json!({ "effect": "error=503", "percent": 100, "seed": 1 });
    assert_eq!(http.put(&point).json(&rule).send().await.unwrap().status(), 200);

    let response = http.post(format!("{}/work", demo.url)).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));

    let board: Value = http
        .get(format!("{}/v1/faults", demo.url))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let expected = json!({ "point": "demo.after-work", "rule": rule, "hits": 1, "fired": 1 });
    assert_eq!(board, json!({ "enabled": true, "points": [expected] }));

    assert_eq!(http.delete(&point).send().await.unwrap().status(), 204);
    assert_eq!(
        http.post(format!("{}/work", demo.url))
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test]
async fn the_board_refuses_what_it_does_not_know() {
    let (demo, _) = demo(true);
    let put = async |point: &str, rule: Value| {
        let response = http_client()
            .put(format!("{}/v1/faults/{point}", demo.url))
            .json(&rule)
            .send()
            .await
            .unwrap();
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap()["type"].clone(),
        )
    };
    let invalid = (400, json!("/problems/invalid-request"));
    assert_eq!(
        put("demo.nowhere", json!({ "effect": "exit" })).await,
        (404, json!("/problems/unknown-fault-point"))
    );
    assert_eq!(
        put("demo.after-work", json!({ "effect": "explode" })).await,
        invalid
    );
    assert_eq!(
        put("demo.after-work", json!({ "effect": "exit", "percent": 0 })).await,
        invalid
    );
}

#[tokio::test]
async fn a_process_without_faults_says_so_and_ignores_the_header() {
    let (demo, _) = demo(false);
    let http = http_client();
    for request in [
        http.get(format!("{}/v1/faults", demo.url)),
        http.put(format!("{}/v1/faults/demo.after-work", demo.url)),
        http.delete(format!("{}/v1/faults/demo.after-work", demo.url)),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(
            response.json::<Value>().await.unwrap()["type"],
            "/problems/faults-disabled"
        );
    }
    let request = http
        .post(format!("{}/work", demo.url))
        .header("fault", "demo.after-work=error=500");
    assert_eq!(request.send().await.unwrap().status(), 200);
}
