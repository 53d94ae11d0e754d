//! Every error is a problem, whoever raises it.

use axum::{
    Router,
    routing::{get, post},
};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use service_kit::{ApiJson, ApiPath, ApiQuery, CallContext, Faults, IdempotencyKey, Readiness, http_client};

use crate::support::{Demo, start, start_with};

#[derive(Deserialize)]
struct Order {
    #[allow(dead_code)]
    quantity: ticketing_types::Quantity,
}

#[derive(Deserialize)]
struct Page {
    #[allow(dead_code)]
    limit: Option<u8>,
}

fn demo() -> Demo {
    start(
        Router::new()
            .route(
                "/orders",
                post(async |_key: IdempotencyKey, ApiJson(_): ApiJson<Order>| "made"),
            )
            .route(
                "/orders/{id}",
                get(async |ApiPath(id): ApiPath<ticketing_types::EventId>| id.to_string()),
            )
            .route(
                "/pages",
                get(async |_: CallContext, ApiQuery(_): ApiQuery<Page>| "page"),
            )
            .route("/panic", get(|| async { panic!("on purpose") as () })),
    )
}

struct Seen {
    status: StatusCode,
    slug: String,
    body: Value,
    headers: reqwest::header::HeaderMap,
}

async fn ask(demo: &Demo, method: Method, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Seen {
    let mut request = http_client().request(method, format!("{}{path}", demo.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.body(body.to_owned());
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
    let slug = body["type"]
        .as_str()
        .unwrap_or_default()
        .trim_start_matches("/problems/")
        .to_owned();
    Seen {
        status,
        slug,
        body,
        headers,
    }
}

#[tokio::test]
async fn every_refusal_is_a_problem_with_its_status_and_slug() {
    let demo = demo();
    let json = ("content-type", "application/json");
    let key = ("idempotency-key", "k");
    let mega = format!("{{\"quantity\": 1, \"pad\": \"{}\"}}", "x".repeat(1 << 20));
    let post = Method::POST;
    let get = Method::GET;
    let table: Vec<(&str, Seen, u16, &str)> = vec![
        (
            "unknown path",
            ask(&demo, get.clone(), "/nowhere", &[], None).await,
            404,
            "not-found",
        ),
        (
            "wrong method",
            ask(&demo, get.clone(), "/orders", &[], None).await,
            405,
            "method-not-allowed",
        ),
        (
            "wrong method beside",
            ask(&demo, post.clone(), "/healthz", &[], None).await,
            405,
            "method-not-allowed",
        ),
        (
            "no key",
            ask(&demo, post.clone(), "/orders", &[json], Some("{\"quantity\": 1}")).await,
            400,
            "idempotency-key-missing",
        ),
        (
            "no content type",
            ask(&demo, post.clone(), "/orders", &[key], Some("{}")).await,
            415,
            "unsupported-media-type",
        ),
        (
            "broken",
            ask(
                &demo,
                post.clone(),
                "/orders",
                &[json, key],
                Some("{\"quantity\": "),
            )
            .await,
            400,
            "invalid-request",
        ),
        (
            "range",
            ask(
                &demo,
                post.clone(),
                "/orders",
                &[json, key],
                Some("{\"quantity\": 11}"),
            )
            .await,
            400,
            "invalid-request",
        ),
        (
            "1 MB",
            ask(&demo, post.clone(), "/orders", &[json, key], Some(&mega)).await,
            413,
            "body-too-large",
        ),
        (
            "path",
            ask(&demo, get.clone(), "/orders/UPPER", &[], None).await,
            400,
            "invalid-request",
        ),
        (
            "query",
            ask(&demo, get.clone(), "/pages?limit=300", &[], None).await,
            400,
            "invalid-request",
        ),
        (
            "strategy",
            ask(&demo, get.clone(), "/pages", &[("lock-strategy", "mutex")], None).await,
            400,
            "unknown-strategy",
        ),
        (
            "panic",
            ask(&demo, get, "/panic", &[], None).await,
            500,
            "internal",
        ),
    ];
    for (what, seen, status, slug) in table {
        assert_eq!(
            (seen.status.as_u16(), seen.slug.as_str()),
            (status, slug),
            "{what}: {}",
            seen.body
        );
        assert_eq!(seen.headers["content-type"], "application/problem+json", "{what}");
        assert_eq!(seen.body["status"], status, "{what}");
        assert!(seen.body["title"].is_string(), "{what}");
        assert!(
            seen.body["instance"]
                .as_str()
                .is_some_and(|path| path.starts_with('/')),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let seen = ask(&demo(), Method::GET, "/orders", &[], None).await;
    assert_eq!(seen.headers["allow"], "POST");
}

#[tokio::test]
async fn pointers_name_parameters_too() {
    let demo = demo();
    let seen = ask(&demo, Method::GET, "/pages?limit=300", &[], None).await;
    assert_eq!(seen.body["errors"][0]["pointer"], "/limit", "{}", seen.body);
    let seen = ask(&demo, Method::GET, "/orders/UPPER", &[], None).await;
    assert_eq!(seen.body["errors"][0]["pointer"], "/id", "{}", seen.body);
}

#[tokio::test]
async fn a_service_shows_its_health_metrics_and_openapi() {
    let demo = demo();
    let http = http_client();
    let get = async |path: &str| http.get(format!("{}{path}", demo.url)).send().await.unwrap();
    assert_eq!(
        get("/healthz").await.json::<Value>().await.unwrap()["instance"],
        "demo-1"
    );
    assert_eq!(get("/readyz").await.status(), 200);
    assert_eq!(
        get("/openapi.json").await.json::<Value>().await.unwrap()["info"]["title"],
        "demo"
    );
    assert_eq!(get("/pages").await.headers()["served-by"], "demo-1");
    let metrics = get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("route=\"/pages\""), "{metrics}");
}

#[tokio::test]
async fn a_service_without_its_database_lives_but_is_not_ready() {
    let readiness = Readiness::new().check("database", || async { Err("gone".to_owned()) });
    let demo = start_with(Router::new(), readiness, Faults::disabled());
    assert_eq!(ask(&demo, Method::GET, "/healthz", &[], None).await.status, 200);
    let seen = ask(&demo, Method::GET, "/readyz", &[], None).await;
    assert_eq!((seen.status.as_u16(), seen.slug.as_str()), (503, "not-ready"));
    assert_eq!(seen.headers["retry-after"], "1");
    assert_eq!(seen.body["checks"]["database"]["detail"], "gone");
}
