//! Whatever is sent wrongly through the front door is refused in its own words, and afterwards nothing is held,
//! sold or charged.

use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::eventually;
use ticketing_types::EventId;

use crate::support::AllInOne;
use crate::support::door::{Door, assert_kept, send};

const JSON: &str = "application/json";
const REST_WITHIN: Duration = Duration::from_secs(20);

/// A purchase of one line with this text as its quantity.
fn with_quantity(quantity: &str) -> String {
    format!(
        r#"{{"buyer": "bob", "items": [{{"event_id": "show", "quantity": {quantity}}}], "card": "card_ok"}}"#
    )
}

/// A purchase of one ticket of each of these events.
fn of(events: &[&str]) -> String {
    let lines: Vec<_> = events
        .iter()
        .map(|event| json!({ "event_id": event, "quantity": 1 }))
        .collect();
    json!({ "buyer": "bob", "items": lines, "card": "card_ok" }).to_string()
}

fn with_card(card: &str) -> String {
    format!(r#"{{"buyer": "bob", "items": [{{"event_id": "show", "quantity": 1}}], "card": {card}}}"#)
}

/// A new event with this text as one of its members.
fn event_with(member: &str, value: &str) -> String {
    let mut members = vec![
        ("id", r#""refused""#),
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

/// Numbers that no whole number from 1 to 10 is.
fn no_quantities() -> Vec<String> {
    let powers = [
        (1_u64 << 31).to_string(),
        (1_u64 << 63).to_string(),
        format!("1{}", "0".repeat(30)),
    ];
    let plain = ["0", "-1", "11", "1.5", "\"1\"", "null"];
    plain.into_iter().map(str::to_owned).chain(powers).collect()
}

/// What every event of these tests must look like: untouched.
async fn assert_untouched(door: &Door, event: &EventId) {
    let audit = door.at_rest(event, REST_WITHIN).await;
    assert_kept(&audit);
    assert_eq!(
        (audit.available, audit.held, audit.sold, audit.charged),
        (audit.capacity, 0, 0, 0),
        "{audit:?}"
    );
    let charges = door.charges_by_key(event).await;
    assert!(
        charges.values().all(|&captures| captures == 0),
        "{event}: {charges:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_body_is_refused_where_it_is_wrong() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let events = [
        door.event("show", 10).await,
        door.event_with(
            "usd",
            json!({ "price": { "amount_minor": 5000, "currency": "USD" } }),
        )
        .await,
        door.event_with(
            "dear",
            json!({ "price": { "amount_minor": i64::MAX, "currency": "EUR" } }),
        )
        .await,
    ];

    let buy = "/v1/purchases";
    let mut table: Vec<(Method, &str, &str, String, u16, &str, Option<&str>)> = Vec::new();
    for bad in no_quantities() {
        table.push((
            Method::POST,
            buy,
            JSON,
            with_quantity(&bad),
            400,
            "invalid-request",
            Some("/items/0/quantity"),
        ));
    }
    let megabyte = with_card(&format!("\"{}\"", "c".repeat(1024 * 1024)));
    table.extend([
        (
            Method::POST,
            buy,
            JSON,
            of(&[]),
            400,
            "invalid-request",
            Some("/items"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["show"; 11]),
            400,
            "invalid-request",
            Some("/items"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["No Such Id"]),
            400,
            "invalid-request",
            Some("/items/0/event_id"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["nowhere"]),
            422,
            "unknown-event",
            None,
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["show", "nowhere"]),
            422,
            "unknown-event",
            None,
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["show", "usd"]),
            422,
            "mixed-currencies",
            None,
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["dear", "dear"]),
            400,
            "invalid-request",
            Some("/items"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            of(&["dear", "show"]),
            400,
            "invalid-request",
            Some("/items"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            with_card("\"card_gold\""),
            400,
            "invalid-request",
            Some("/card"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            with_card("null"),
            400,
            "invalid-request",
            Some("/card"),
        ),
        (Method::POST, buy, JSON, "{}".into(), 400, "invalid-request", None),
        (
            Method::POST,
            buy,
            JSON,
            with_card("\"card_ok\"").replace("bob", ""),
            400,
            "invalid-request",
            Some("/buyer"),
        ),
        (
            Method::POST,
            buy,
            JSON,
            with_card("\"card_ok\"").replace('}', ""),
            400,
            "invalid-request",
            Some(""),
        ),
        (
            Method::POST,
            buy,
            JSON,
            format!("{} {{}}", of(&["show"])),
            400,
            "invalid-request",
            Some(""),
        ),
        (
            Method::POST,
            buy,
            JSON,
            String::new(),
            400,
            "invalid-request",
            Some(""),
        ),
        (
            Method::POST,
            buy,
            "text/plain",
            of(&["show"]),
            415,
            "unsupported-media-type",
            None,
        ),
        (
            Method::POST,
            buy,
            "application/x-www-form-urlencoded",
            "a=b".into(),
            415,
            "unsupported-media-type",
            None,
        ),
        (Method::POST, buy, JSON, megabyte, 413, "body-too-large", None),
        (
            Method::POST,
            "/v1/purchase",
            JSON,
            of(&["show"]),
            404,
            "not-found",
            None,
        ),
        (
            Method::POST,
            "/v1/purchases/",
            JSON,
            of(&["show"]),
            404,
            "not-found",
            None,
        ),
        (
            Method::PUT,
            buy,
            JSON,
            of(&["show"]),
            405,
            "method-not-allowed",
            None,
        ),
        (
            Method::DELETE,
            "/v1/events/show",
            JSON,
            String::new(),
            405,
            "method-not-allowed",
            None,
        ),
        (
            Method::GET,
            "/v1/purchases/nobody-s",
            JSON,
            String::new(),
            404,
            "purchase-not-found",
            None,
        ),
        (
            Method::GET,
            "/v1/events/nowhere",
            JSON,
            String::new(),
            404,
            "event-not-found",
            None,
        ),
        (
            Method::PUT,
            "/v1/holds/NO",
            JSON,
            of(&["show"]),
            400,
            "invalid-request",
            Some("/id"),
        ),
    ]);
    for (member, bad, pointer) in [
        ("capacity", "0", "/capacity"),
        ("capacity", "-1", "/capacity"),
        ("capacity", "1000000000", "/capacity"),
        ("capacity", "1.5", "/capacity"),
        ("max_per_buyer", "0", "/max_per_buyer"),
        ("name", "\"\"", "/name"),
        ("id", "\"Not An Id\"", "/id"),
        ("price", r#"{"amount_minor": -1, "currency": "EUR"}"#, "/price"),
        (
            "price",
            r#"{"amount_minor": 1, "currency": "EURO"}"#,
            "/price/currency",
        ),
    ] {
        table.push((
            Method::POST,
            "/v1/events",
            JSON,
            event_with(member, bad),
            400,
            "invalid-request",
            Some(pointer),
        ));
    }

    for (row, (method, path, content_type, body, status, slug, pointer)) in table.into_iter().enumerate() {
        let case = format!("{method} {path} {content_type} {}", &body[..body.len().min(120)]);
        let request = door
            .request(method, path)
            .header("idempotency-key", format!("row-{row}"));
        let reply = send(request.header("content-type", content_type).body(body)).await;
        assert_eq!(
            (reply.status, reply.slug()),
            (status, slug),
            "{case}: {}",
            reply.body
        );
        if let Some(pointer) = pointer {
            assert_eq!(
                reply.body["errors"][0]["pointer"], pointer,
                "{case}: {}",
                reply.body
            );
        }
        reply.is_problem(status, slug);
    }
    for event in &events {
        assert_untouched(door, event).await;
    }
    door.get("/v1/events/refused")
        .await
        .is_problem(404, "event-not-found");
    // A key whose request was no purchase is still good: the table refused, it did not only not see.
    let good = door
        .request(Method::POST, buy)
        .header("idempotency-key", "row-0")
        .header("content-type", JSON);
    send(good.body(of(&["show"]))).await.is(201);
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_header_is_refused() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let event = door.event("show", 10).await;
    let bare = || {
        door.request(Method::POST, "/v1/purchases")
            .header("content-type", JSON)
            .body(of(&["show"]))
    };
    let with_key = |key: &str| {
        bare().header(
            "idempotency-key",
            HeaderValue::from_bytes(key.as_bytes()).unwrap(),
        )
    };
    let invalid = "idempotency-key-invalid";

    let table: Vec<(&str, RequestBuilder, &str)> = vec![
        ("no key", bare(), "idempotency-key-missing"),
        ("an empty key", with_key(""), invalid),
        ("a blank key", with_key("\"\""), invalid),
        ("a key of 256 characters", with_key(&"k".repeat(256)), invalid),
        ("two keys", with_key("a").header("idempotency-key", "b"), invalid),
        (
            "the same key twice",
            with_key("a").header("idempotency-key", "a"),
            invalid,
        ),
        ("keys joined by a comma", with_key("a,b"), invalid),
        ("quoted keys joined by a comma", with_key("\"a\", \"b\""), invalid),
        ("a key that is not ASCII", with_key("schlüssel"), invalid),
        ("a key with a space", with_key("a b"), invalid),
        ("a quote that is not closed", with_key("\"a"), invalid),
        (
            "an unknown strategy",
            with_key("a").header("lock-strategy", "mutex"),
            "unknown-strategy",
        ),
        (
            "an unknown payment key",
            with_key("a").header("payment-key", "new"),
            "invalid-request",
        ),
        (
            "an unknown fault",
            with_key("a").header("fault", "nonsense"),
            "invalid-request",
        ),
    ];
    for (case, request, slug) in table {
        let reply = send(request).await;
        assert_eq!(
            (reply.status, reply.slug()),
            (400, slug),
            "{case}: {}",
            reply.body
        );
        if slug == "unknown-strategy" {
            let known = reply.body["known"].as_array().expect("a list");
            assert!(
                known.contains(&json!("raft")) && known.contains(&json!("none")),
                "{}",
                reply.body
            );
        }
        reply.is_problem(400, slug);
    }
    assert_untouched(door, &event).await;

    // The longest key is still a key, and quotes are not part of it.
    let longest = "k".repeat(255);
    let first = send(with_key(&longest)).await.is(201);
    let again = send(with_key(&format!("\"{longest}\""))).await.is(201);
    assert_eq!(
        (again.header("idempotent-replayed"), &again.body),
        (Some("true"), &first.body)
    );
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_lines_of_one_event_are_one_wish() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let event = door.event("small", 5).await;
    let lines = |a: u32, b: u32| {
        json!({ "buyer": "bob", "card": "card_ok", "items": [
            { "event_id": "small", "quantity": a }, { "event_id": "small", "quantity": b }
        ] })
    };
    let short = send(door.purchase("six", &lines(3, 3)))
        .await
        .is_problem(409, "sold-out");
    assert_eq!(
        short.body["lines"],
        json!([
            { "event_id": "small", "requested": 6, "available": 5, "may_return": false }
        ])
    );
    assert_untouched(door, &event).await;

    let sold = send(door.purchase("five", &lines(2, 3))).await.is(201);
    assert_eq!(sold.body["tickets"].as_array().map(Vec::len), Some(5));
    let audit = door.at_rest(&event, REST_WITHIN).await;
    assert_kept(&audit);
    assert_eq!((audit.sold, audit.charged), (5, 1));

    let limited = door.event_with("limited", json!({ "max_per_buyer": 4 })).await;
    let five = json!({ "buyer": "bob", "card": "card_ok", "items": [
        { "event_id": "limited", "quantity": 2 }, { "event_id": "limited", "quantity": 3 }
    ] });
    send(door.purchase("limit", &five))
        .await
        .is_problem(422, "limit-reached");
    assert_untouched(door, &limited).await;
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_stands_for_one_order_of_one_buyer() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let event = door.event("show", 20).await;
    let order = |buyer: &str, quantity: u32, card: &str| json!({ "buyer": buyer, "items": [{ "event_id": "show", "quantity": quantity }], "card": card });
    let buy = |key: &str, body: Value| send(door.purchase(key, &body));

    // While the first is at it: held up between two steps, no lock held.
    let first = door.purchase("k", &order("bob", 1, "card_ok"));
    let first = tokio::spawn(send(first.header("fault", "checkout.after-hold=delay=3s")));
    eventually(REST_WITHIN, "the first purchase to be under way", async || {
        (!door.checkout_book(&event).await.purchases.is_empty()).then_some(())
    })
    .await;
    buy("k", order("bob", 2, "card_ok"))
        .await
        .is_problem(422, "idempotency-key-reused");
    let running = buy("k", order("bob", 1, "card_ok"))
        .await
        .is_problem(409, "purchase-in-progress");
    assert!(running.header("retry-after").is_some());

    // When it is over.
    let first = first.await.unwrap().is(201);
    assert_eq!(first.header("idempotent-replayed"), None);
    buy("k", order("bob", 2, "card_ok"))
        .await
        .is_problem(422, "idempotency-key-reused");
    buy("k", order("bob", 1, "card_slow"))
        .await
        .is_problem(422, "idempotency-key-reused");
    let again = buy("k", order("bob", 1, "card_ok")).await.is(201);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.body, first.body);

    // The same key of another buyer is another key.
    let other = buy("k", order("eve", 1, "card_ok")).await.is(201);
    assert_eq!(other.header("idempotent-replayed"), None);
    assert_ne!(other.body["id"], first.body["id"]);

    // A decline is an answer like any other; a new key is a new try.
    buy("d", order("bob", 1, "card_declined"))
        .await
        .is_problem(402, "payment-declined");
    let again = buy("d", order("bob", 1, "card_declined"))
        .await
        .is_problem(402, "payment-declined");
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    buy("d2", order("bob", 1, "card_ok")).await.is(201);

    let audit = door.at_rest(&event, REST_WITHIN).await;
    assert_kept(&audit);
    assert_eq!((audit.sold, audit.charged, audit.purchases.declined), (3, 3, 1));
    suite.stop().await;
}
