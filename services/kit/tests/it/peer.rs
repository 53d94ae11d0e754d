//! Done, refused, busy, unknown.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, put},
};
use serde_json::{Value, json};
use service_kit::{CallContext, CallError, Faults, Peer, Problem, Readiness, http_client, peer::Outcome};
use ticketing_types::{PaymentKey, Strategy};

use crate::support::{WITHIN, nobody, start, start_with};

fn peer(urls: &[&str]) -> Peer {
    let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
    Peer::new(&http_client(), "demo", &urls, Duration::from_secs(5)).unwrap()
}

#[tokio::test]
async fn an_instance_that_refuses_connections_is_passed_over() {
    let demo = start(Router::new().route("/", get(|| async { Json(7) })));
    let peer = peer(&[&nobody(), &demo.url, &nobody()]);
    for _ in 0..6 {
        assert_eq!(peer.get("/").send::<u8>().await.unwrap().body, 7);
    }
}

#[tokio::test]
async fn where_nobody_listens_nothing_happened() {
    let error = peer(&[&nobody()]).get("/").send::<Value>().await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error}");
    assert_eq!((error.outcome(), error.retryable()), (Outcome::NotDone, true));
}

#[tokio::test]
async fn a_4xx_is_a_refusal_with_the_peers_own_problem() {
    let sold_out = || async { Problem::new(StatusCode::CONFLICT, "sold-out").with("lines", [1]) };
    let demo = start(Router::new().route("/", get(sold_out)));
    let error = peer(&[&demo.url]).get("/").send::<Value>().await.unwrap_err();
    assert_eq!((error.slug(), error.retryable()), ("sold-out", false));
    assert_eq!(error.problem().unwrap().member::<Vec<u8>>("lines"), Some(vec![1]));
}

#[tokio::test]
async fn a_late_answer_is_unknown() {
    let late = || async { std::future::pending::<()>().await };
    let demo = start(Router::new().route("/", get(late)));
    let call = peer(&[&demo.url]);
    let error = call
        .get("/")
        .timeout(Duration::from_millis(100))
        .send::<()>()
        .await
        .unwrap_err();
    assert_eq!((error.outcome(), error.retryable()), (Outcome::Unknown, true));
}

#[tokio::test]
async fn a_503_with_retry_after_is_busy_and_without_it_unknown() {
    let demo = start(
        Router::new()
            .route(
                "/busy",
                get(|| async { Problem::busy("lock-wait-timeout", Duration::from_secs(1)) }),
            )
            .route("/odd", get(|| async { StatusCode::SERVICE_UNAVAILABLE })),
    );
    let peer = peer(&[&demo.url]);
    let busy = peer
        .get("/busy")
        .until_known::<()>(Instant::now() + WITHIN)
        .await
        .unwrap_err();
    assert!(matches!(busy, CallError::Busy { .. }), "{busy}");
    let odd = peer.get("/odd").send::<()>().await.unwrap_err();
    assert!(matches!(odd, CallError::Unknown { .. }), "{odd}");
}

#[tokio::test]
async fn an_unknown_outcome_is_asked_about_with_the_same_request_until_it_is_known() {
    // The first two attempts are worked on and lose their answers.
    let attempts = Arc::new(AtomicU32::new(0));
    let faults = Faults::new(true, &["demo.after-work"]);
    let work = {
        let (attempts, faults) = (attempts.clone(), faults.clone());
        move |mut ctx: CallContext, body: Json<Value>| async move {
            if attempts.fetch_add(1, SeqCst) < 2 {
                ctx.fault = Some("demo.after-work=drop-reply".parse().unwrap());
            }
            faults.hit("demo.after-work", &ctx).await?;
            Ok::<_, Problem>(body)
        }
    };
    let demo = start_with(
        Router::new().route("/work/1", put(work)),
        Readiness::new(),
        faults,
    );
    let peer = peer(&[&demo.url]);
    let call = peer.put("/work/1").json(&json!({ "n": 1 }));
    let answer = call.until_known::<Value>(Instant::now() + WITHIN).await.unwrap();
    assert_eq!(answer.body, json!({ "n": 1 }));
    assert_eq!(attempts.load(SeqCst), 3);
}

#[tokio::test]
async fn busy_after_unknown_is_still_unknown() {
    // A 500 leaves the outcome open; the 503s after it speak of later attempts only.
    let attempts = Arc::new(AtomicU32::new(0));
    let work = move || async move {
        match attempts.fetch_add(1, SeqCst) {
            0 => Problem::internal(),
            _ => Problem::busy("overloaded", Duration::from_secs(1)),
        }
    };
    let demo = start(Router::new().route("/", put(work)));
    let deadline = Instant::now() + Duration::from_millis(300);
    let error = peer(&[&demo.url])
        .put("/")
        .until_known::<()>(deadline)
        .await
        .unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
}

#[tokio::test]
async fn until_settled_outlasts_a_busy_peer() {
    let attempts = AtomicU32::new(0);
    let attempts = Arc::new(attempts);
    let work = move || async move {
        match attempts.fetch_add(1, SeqCst) {
            0..3 => Err(Problem::busy("overloaded", Duration::from_secs(1))),
            _ => Ok(Json(1)),
        }
    };
    let demo = start(Router::new().route("/", put(work)));
    let answer = peer(&[&demo.url])
        .put("/")
        .until_settled::<u8>(Instant::now() + WITHIN)
        .await
        .unwrap();
    assert_eq!(answer.body, 1);
}

#[tokio::test]
async fn the_context_travels_with_the_call() {
    let echo = async |ctx: CallContext| {
        Json(json!([
            ctx.strategy,
            ctx.payment_key,
            ctx.fault.map(|fault| fault.to_string()),
            ctx.traceparent
        ]))
    };
    let demo = start(Router::new().route("/", get(echo)));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut ctx = CallContext::with_strategy(Strategy::Atomic);
    ctx.payment_key = Some(PaymentKey::Fresh);
    ctx.fault = Some("a.b=delay=5ms@50".parse().unwrap());
    ctx.traceparent = Some(trace.to_owned());
    let seen = peer(&[&demo.url])
        .get("/")
        .context(&ctx)
        .send::<Value>()
        .await
        .unwrap()
        .body;
    assert_eq!(seen, json!(["atomic", "fresh", "a.b=delay=5ms@50", trace]));
}

#[tokio::test]
async fn an_empty_answer_reads_as_nothing() {
    let demo = start(Router::new().route("/", put(|| async { StatusCode::NO_CONTENT })));
    let answer = peer(&[&demo.url]).put("/").send::<()>().await.unwrap();
    assert_eq!(answer.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_once_are_all_answered() {
    service_kit::limits::raise_nofile();
    let (one, two) = (
        start(Router::new().route("/", get(|| async { Json(1) }))),
        start(Router::new().route("/", get(|| async { Json(1) }))),
    );
    let peer = peer(&[&one.url, &two.url]);
    let calls = (0..1000).map(|_| async { peer.get("/").timeout(WITHIN).send::<u8>().await });
    let answers = futures::future::join_all(calls).await;
    assert_eq!(
        answers
            .into_iter()
            .map(|answer| u32::from(answer.unwrap().body))
            .sum::<u32>(),
        1000
    );
}
