//! Whatever is sent wrongly is refused with its own problem, and nothing is held.

use reqwest::Method;
use serde_json::json;
use testkit::TestDb;

use crate::shop::{Shop, read};

/// A cart of one line with this text as its quantity.
fn with_quantity(quantity: &str) -> String {
    format!(r#"{{"buyer": "b", "items": [{{"event_id": "e", "quantity": {quantity}}}]}}"#)
}

fn with_lines(lines: usize) -> String {
    let lines = vec![r#"{"event_id": "e", "quantity": 1}"#; lines].join(",");
    format!(r#"{{"buyer": "b", "items": [{lines}]}}"#)
}

fn event_with(member: &str, value: &str) -> String {
    let mut members = vec![
        ("name", r#""A show""#),
        ("capacity", "1"),
        ("price", r#"{"amount_minor": 1, "currency": "EUR"}"#),
    ];
    members.retain(|(name, _)| *name != member);
    members.push((member, value));
    let members: Vec<_> = members
        .iter()
        .map(|(name, value)| format!(r#""{name}": {value}"#))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Method, path, content type, body; status, slug, and the pointer to what is wrong.
type Row<'a> = (Method, &'a str, &'a str, String, u16, &'a str, Option<&'a str>);

const JSON: &str = "application/json";

testkit::for_each_engine! {
    async fn every_bad_body_is_refused_where_it_is_wrong_and_holds_nothing(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        shop.event("e", 10).await;
        shop.event_with(json!({ "id": "usd", "capacity": 10, "price": { "amount_minor": 1, "currency": "USD" } })).await;
        shop.event_with(json!({ "id": "dear", "capacity": 10, "price": { "amount_minor": i64::MAX, "currency": "EUR" } })).await;

        let two_to_the_31 = (1_u64 << 31).to_string();
        let two_to_the_63 = (1_u64 << 63).to_string();
        let ten_to_the_30 = format!("1{}", "0".repeat(30));
        let megabyte = format!(r#"{{"buyer": "{}", "items": []}}"#, "b".repeat(1024 * 1024));
        let two = |a: &str, b: &str| format!(
            r#"{{"buyer": "b", "items": [{{"event_id": "{a}", "quantity": 1}}, {{"event_id": "{b}", "quantity": 1}}]}}"#
        );
        let ttl = |ttl: &str| format!(r#"{{"buyer": "b", "items": [{{"event_id": "e", "quantity": 1}}], "ttl_ms": {ttl}}}"#);
        let hold = "/v1/holds/bad";
        let quantity = Some("/items/0/quantity");

        let mut table: Vec<Row> = Vec::new();
        for bad in ["0", "-1", "11", "1.5", "\"1\"", "null", &two_to_the_31, &two_to_the_63, &ten_to_the_30] {
            table.push((Method::PUT, hold, JSON, with_quantity(bad), 400, "invalid-request", quantity));
        }
        for bad in ["0", "-1", "3600001", "\"1\"", &two_to_the_63] {
            table.push((Method::PUT, hold, JSON, ttl(bad), 400, "invalid-request", Some("/ttl_ms")));
        }
        table.extend([
            (Method::PUT, hold, JSON, with_lines(0), 400, "invalid-request", Some("/items")),
            (Method::PUT, hold, JSON, with_lines(11), 400, "invalid-request", Some("/items")),
            (Method::PUT, hold, JSON, r#"{"items": []}"#.into(), 400, "invalid-request", None),
            (Method::PUT, hold, JSON, r#"{"buyer": "", "items": []}"#.into(), 400, "invalid-request", Some("/buyer")),
            (Method::PUT, hold, JSON, "{".into(), 400, "invalid-request", Some("")),
            (Method::PUT, hold, JSON, String::new(), 400, "invalid-request", Some("")),
            (Method::PUT, hold, "text/plain", with_lines(1), 415, "unsupported-media-type", None),
            (Method::PUT, hold, JSON, megabyte, 413, "body-too-large", None),
            (Method::PUT, hold, JSON, two("e", "nowhere"), 422, "unknown-event", None),
            (Method::PUT, hold, JSON, two("e", "usd"), 422, "mixed-currencies", None),
            (Method::PUT, hold, JSON, two("dear", "dear"), 400, "invalid-request", Some("/items")),
            (Method::PUT, hold, JSON, two("dear", "e"), 400, "invalid-request", Some("/items")),
            (Method::PUT, "/v1/holds/BAD", JSON, with_lines(1), 400, "invalid-request", Some("/id")),
            (Method::PUT, "/v1/holds/a%20b", JSON, with_lines(1), 400, "invalid-request", Some("/id")),
            (Method::POST, hold, JSON, with_lines(1), 405, "method-not-allowed", None),
            (Method::POST, "/v1/nowhere", JSON, with_lines(1), 404, "not-found", None),
            (Method::POST, "/v1/events", JSON, event_with("capacity", "0"), 400, "invalid-request", Some("/capacity")),
            (Method::POST, "/v1/events", JSON, event_with("capacity", "1000000000"), 400, "invalid-request", Some("/capacity")),
            (Method::POST, "/v1/events", JSON, event_with("max_per_buyer", "0"), 400, "invalid-request", Some("/max_per_buyer")),
            (Method::POST, "/v1/events", JSON, event_with("name", "\"\""), 400, "invalid-request", Some("/name")),
            (Method::POST, "/v1/events", JSON, event_with("id", "\"No Good\""), 400, "invalid-request", Some("/id")),
            (Method::POST, "/v1/events", JSON, event_with("price", r#"{"amount_minor": -1, "currency": "EUR"}"#), 400, "invalid-request", Some("/price")),
            (Method::POST, "/v1/events", JSON, event_with("price", r#"{"amount_minor": 1, "currency": "XYZ1"}"#), 400, "invalid-request", Some("/price/currency")),
        ]);
        for (method, path, content_type, body, status, slug, pointer) in table {
            let case = format!("{method} {path} {}", &body[..body.len().min(100)]);
            let request = shop.client.request(method, format!("{}{path}", shop.urls[0]));
            let reply = read(request.header("content-type", content_type).body(body)).await;
            assert_eq!((reply.status, reply.slug()), (status, slug), "{case}: {}", reply.body);
            if let Some(pointer) = pointer {
                assert_eq!(reply.body["errors"][0]["pointer"], pointer, "{case}: {}", reply.body);
            }
        }
        for event in ["e", "usd", "dear"] {
            let stock = shop.stock(event).await;
            assert_eq!((stock.available, stock.held, stock.sold), (10, 0, 0), "{event}");
        }
        // The id is still good: none of these was a hold.
        let cart = crate::shop::cart("b", &[("e", 1)]);
        shop.send(0, Method::PUT, hold, &[], Some(&cart)).await.is(201);
        shop.close().await;
    }

    async fn a_strategy_that_is_unknown_or_not_there_is_said_so(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        shop.event("e", 10).await;
        let cart = crate::shop::cart("b", &[("e", 1)]);
        let unknown = shop.send(0, Method::PUT, "/v1/holds/h", &[("lock-strategy", "mutex")], Some(&cart)).await;
        unknown.is_problem(400, "unknown-strategy");
        assert!(unknown.body["known"].as_array().is_some_and(|known| known.contains(&json!("raft"))));
        for name in ["raft", "redis", "row"] {
            let reply = shop.send(0, Method::PUT, "/v1/holds/h", &[("lock-strategy", name)], Some(&cart)).await;
            reply.is_problem(503, "strategy-unavailable");
            assert!(reply.retry_after, "{name}");
        }
        assert_eq!(shop.stock("e").await.available, 10);
        shop.close().await;
    }
}
