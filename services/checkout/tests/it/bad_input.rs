//! Bad input: each with its status and slug, and nothing held, sold or charged.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{TestDb, for_each_engine};

use crate::shop::{Answer, Shop, order};

const GOOD: &str = r#"{"buyer":"ann","card":"card_ok","items":[{"event_id":"gala","quantity":1}]}"#;

/// Bodies that cannot be read, and where they are wrong.
fn bodies() -> Vec<(String, &'static str)> {
    let quantities = [
        "0",
        "-1",
        "11",
        "1.5",
        "\"1\"",
        "null",
        "2147483648",
        "9223372036854775808",
        "1e30",
    ];
    let huge = format!("1{}", "0".repeat(30));
    let quantities = quantities.into_iter().chain([huge.as_str()]);
    let mut bodies: Vec<_> = quantities
        .map(|quantity| {
            let body = GOOD.replace("\"quantity\":1", &format!("\"quantity\":{quantity}"));
            (body, "/items/0/quantity")
        })
        .collect();
    let with = |member: &str, value: Value| {
        let mut body: Value = serde_json::from_str(GOOD).unwrap();
        body[member] = value;
        body.to_string()
    };
    let line = json!({ "event_id": "gala", "quantity": 1 });
    bodies.extend([
        (with("items", json!([])), "/items"),
        (with("items", vec![line; 11].into()), "/items"),
        (with("items", json!({})), "/items"),
        (
            with("items", json!([{ "event_id": "Gala!", "quantity": 1 }])),
            "/items/0/event_id",
        ),
        (with("items", json!([{ "quantity": 1 }])), "/items/0/event_id"),
        (with("card", json!("card_gold")), "/card"),
        (with("buyer", json!("")), "/buyer"),
        (with("buyer", "x".repeat(129).into()), "/buyer"),
        (with("buyer", json!(7)), "/buyer"),
        (GOOD.replace("\"card\":\"card_ok\",", ""), "/card"),
        ("{\"buyer\":".to_owned(), ""),
        ("[]".to_owned(), ""),
        (String::new(), ""),
        (format!("{GOOD} trailing"), ""),
    ]);
    bodies
}

async fn post(shop: &Shop, body: impl Into<String>, headers: &[(&str, &[u8])]) -> Answer {
    let mut request = shop.request(Method::POST, "/v1/purchases").body(body.into());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request).await
}

const JSON: (&str, &[u8]) = ("content-type", b"application/json");
const KEY: (&str, &[u8]) = ("idempotency-key", b"k-1");

for_each_engine! {
    async fn bad_input_is_refused_by_name_and_leaves_nothing_behind(db: TestDb) {
        let shop = Shop::open(db, 100).await;
        for (body, pointer) in bodies() {
            let answer = post(&shop, body.as_str(), &[JSON, KEY]).await;
            assert_eq!((answer.status, answer.slug().as_str()), (400, "invalid-request"), "{body}");
            assert_eq!(answer.json()["errors"][0]["pointer"], pointer, "{body}");
        }

        let long = "x".repeat(256);
        let missing = post(&shop, GOOD, &[JSON]).await;
        assert_eq!((missing.status, missing.slug().as_str()), (400, "idempotency-key-missing"));
        let bad_keys: [&[u8]; 6] = [b"", b"\"\"", long.as_bytes(), b"a,b", "schl\u{fc}ssel".as_bytes(), b"two words"];
        for key in bad_keys {
            let answer = post(&shop, GOOD, &[JSON, ("idempotency-key", key)]).await;
            assert_eq!((answer.status, answer.slug().as_str()), (400, "idempotency-key-invalid"), "{key:?}");
        }
        let doubled = post(&shop, GOOD, &[JSON, KEY, ("idempotency-key", b"k-2")]).await;
        assert_eq!((doubled.status, doubled.slug().as_str()), (400, "idempotency-key-invalid"));

        let unknown = post(&shop, GOOD, &[JSON, KEY, ("lock-strategy", b"mutex")]).await;
        assert_eq!((unknown.status, unknown.slug().as_str()), (400, "unknown-strategy"));
        assert!(unknown.json()["known"].as_array().unwrap().contains(&"raft".into()));

        let text = post(&shop, GOOD, &[("content-type", b"text/plain"), KEY]).await;
        assert_eq!((text.status, text.slug().as_str()), (415, "unsupported-media-type"));
        let large = post(&shop, "x".repeat(1 << 20), &[JSON, KEY]).await;
        assert_eq!((large.status, large.slug().as_str()), (413, "body-too-large"));

        for (method, path, status, slug) in [
            (Method::GET, "/v1/nothing", 404, "not-found"),
            (Method::DELETE, "/v1/purchases", 405, "method-not-allowed"),
            (Method::GET, "/v1/purchases/Not%20An%20Id", 400, "invalid-request"),
            (Method::GET, "/v1/purchases?limit=0", 400, "invalid-request"),
            (Method::GET, "/v1/purchases?limit=101", 400, "invalid-request"),
            (Method::GET, "/v1/purchases?limit=x", 400, "invalid-request"),
            (Method::GET, "/v1/purchases?buyer=", 400, "invalid-request"),
            (Method::POST, "/v1/purchases/..%2F/cancel", 400, "invalid-request"),
            (Method::GET, "/v1/audit-records/UPPER", 400, "invalid-request"),
        ] {
            let answer = Answer::of(shop.request(method, path)).await;
            assert_eq!((answer.status, answer.slug().as_str()), (status, slug), "{path}: {}", answer.text);
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        }

        assert_eq!(shop.world.seen(), [], "nobody was asked for anything");
        let list = shop.get("/v1/purchases").await.json();
        assert_eq!(list["purchases"], json!([]));
        // None of that used the key up.
        assert_eq!(post(&shop, GOOD, &[JSON, KEY]).await.status, 201);
    }

    async fn an_unknown_event_is_422(db: TestDb) {
        let shop = Shop::open(db, 100).await;
        let mut wish = order("ann", 1);
        wish["items"][0]["event_id"] = "nowhere".into();
        let answer = shop.buy("k-1", &wish).await;
        assert_eq!((answer.status, answer.slug().as_str()), (422, "unknown-event"));
    }

    async fn a_strategy_that_is_not_built_in_is_503(db: TestDb) {
        let shop = Shop::open(db, 100).await;
        for strategy in ["redis", "row", "raft"] {
            let answer = Answer::of(shop.buying("k-1", &order("ann", 1)).header("lock-strategy", strategy)).await;
            assert_eq!(answer.status, 503, "{strategy}: {}", answer.text);
            assert!(answer.header("retry-after").is_some());
        }
        assert_eq!(shop.world.seen(), []);
    }
}
