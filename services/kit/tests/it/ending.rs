//! How a service ends.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, routing::get};
use service_kit::{bind, http_client, server::DRAIN};
use tokio::sync::Notify;

use crate::support::{WITHIN, start};

#[tokio::test]
async fn a_taken_address_is_named() {
    let demo = start(Router::new());
    let addr = demo.running.as_ref().unwrap().addr;
    let error = bind(addr).expect_err("taken").to_string();
    assert_eq!(
        error,
        format!("cannot listen on {addr}: another process does already")
    );
}

#[tokio::test]
async fn requests_in_flight_are_answered_before_the_end() {
    let (entered, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (entered, go_on) = (entered.clone(), go_on.clone());
        move || async move {
            entered.notify_one();
            go_on.notified().await;
            "answered"
        }
    };
    let mut demo = start(Router::new().route("/slow", get(slow)));
    let url = format!("{}/slow", demo.url);
    let request =
        tokio::spawn(async move { http_client().get(url).send().await.unwrap().text().await.unwrap() });
    entered.notified().await;
    demo.shutdown.cancel();
    let url = demo.url.clone();
    testkit::eventually(WITHIN, "new connections to be refused", async || {
        http_client()
            .get(&url)
            .send()
            .await
            .err()
            .filter(|error| error.is_connect())
    })
    .await;
    go_on.notify_one();
    assert_eq!(request.await.unwrap(), "answered");
    demo.running.take().unwrap().join().await.unwrap();
}

#[tokio::test]
async fn a_stream_that_never_ends_is_cut_within_five_seconds() {
    let endless =
        || async { Body::from_stream(futures::stream::pending::<Result<&'static [u8], std::io::Error>>()) };
    let mut demo = start(Router::new().route("/stream", get(endless)));
    let response = http_client()
        .get(format!("{}/stream", demo.url))
        .send()
        .await
        .unwrap();
    demo.shutdown.cancel();
    let started = std::time::Instant::now();
    demo.running.take().unwrap().join().await.unwrap();
    assert!(
        started.elapsed() >= DRAIN && started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    response.bytes().await.expect_err("cut in the middle");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let mut demo = start(Router::new().route("/", get(|| async { "hello" })));
    let http = http_client();
    http.get(&demo.url).send().await.unwrap().text().await.unwrap(); // now idle in the client's pool
    demo.shutdown.cancel();
    let started = std::time::Instant::now();
    demo.running.take().unwrap().join().await.unwrap();
    assert!(started.elapsed() < DRAIN / 2, "{:?}", started.elapsed());
}
