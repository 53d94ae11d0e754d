//! Whatever is sent wrongly through the front door is refused in its own words, and afterwards nothing is held,
//! sold or charged.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::support::AllInOne;
use crate::support::door::{assert_kept, send};

const JSON: &str = "application/json";
const BUY: &str = "/v1/purchases";
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

/// A request, and how it is refused.
struct Row {
    method: Method,
    path: &'static str,
    content_type: &'static str,
    body: String,
    status: u16,
    slug: &'static str,
    pointer: Option<&'static str>,
}

/// A purchase that is refused like this.
fn refused(body: impl Into<String>, status: u16, slug: &'static str) -> Row {
    Row {
        method: Method::POST,
        path: BUY,
        content_type: JSON,
        body: body.into(),
        status,
        slug,
        pointer: None,
    }
}

/// A purchase whose body is wrong at this place.
fn invalid(body: impl Into<String>, pointer: &'static str) -> Row {
    Row {
        pointer: Some(pointer),
        ..refused(body, 400, "invalid-request")
    }
}

impl Row {
    fn to(self, method: Method, path: &'static str) -> Self {
        Self { method, path, ..self }
    }

    fn typed(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }
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

    let mut table: Vec<Row> = Vec::new();
    for bad in no_quantities() {
        table.push(invalid(with_quantity(&bad), "/items/0/quantity"));
    }
    let good = || of(&["show"]);
    let megabyte = with_card(&format!("\"{}\"", "c".repeat(1024 * 1024)));
    table.extend([
        invalid(of(&[]), "/items"),
        invalid(of(&["show"; 11]), "/items"),
        invalid(of(&["No Such Id"]), "/items/0/event_id"),
        invalid(of(&["dear", "dear"]), "/items"), // too much money for 63 bits
        invalid(of(&["dear", "show"]), "/items"),
        invalid(with_card("\"card_gold\""), "/card"),
        invalid(with_card("null"), "/card"),
        invalid(good().replace("bob", ""), "/buyer"),
        invalid(good().replace('}', ""), ""),
        invalid(format!("{} {{}}", good()), ""),
        invalid("", ""),
        refused("{}", 400, "invalid-request"),
        refused(of(&["nowhere"]), 422, "unknown-event"),
        refused(of(&["show", "nowhere"]), 422, "unknown-event"),
        refused(of(&["show", "usd"]), 422, "mixed-currencies"),
        refused(megabyte, 413, "body-too-large"),
        refused(good(), 415, "unsupported-media-type").typed("text/plain"),
        refused("a=b", 415, "unsupported-media-type").typed("application/x-www-form-urlencoded"),
        refused(good(), 404, "not-found").to(Method::POST, "/v1/purchase"),
        refused(good(), 404, "not-found").to(Method::POST, "/v1/purchases/"),
        refused(good(), 405, "method-not-allowed").to(Method::PUT, BUY),
        refused("", 405, "method-not-allowed").to(Method::DELETE, "/v1/events/show"),
        refused("", 404, "purchase-not-found").to(Method::GET, "/v1/purchases/nobody-s"),
        refused("", 404, "event-not-found").to(Method::GET, "/v1/events/nowhere"),
        invalid(good(), "/id").to(Method::PUT, "/v1/holds/NO"),
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
        table.push(invalid(event_with(member, bad), pointer).to(Method::POST, "/v1/events"));
    }

    for (at, row) in table.into_iter().enumerate() {
        let start = &row.body[..row.body.len().min(120)];
        let case = format!("{} {} {} {start}", row.method, row.path, row.content_type);
        let request = door
            .request(row.method, row.path)
            .header("idempotency-key", format!("row-{at}"));
        let request = request.header("content-type", row.content_type).body(row.body);
        let reply = send(request).await;
        assert_eq!(
            (reply.status, reply.slug()),
            (row.status, row.slug),
            "{case}: {}",
            reply.body
        );
        if let Some(pointer) = row.pointer {
            assert_eq!(
                reply.body["errors"][0]["pointer"], pointer,
                "{case}: {}",
                reply.body
            );
        }
        reply.problem(row.status, row.slug);
    }
    for event in &events {
        door.assert_untouched(event).await;
    }
    door.get("/v1/events/refused")
        .await
        .problem(404, "event-not-found");
    // A key whose request was no purchase is still good: the table was refused for what it said, not unseen.
    let request = door.request(Method::POST, BUY).header("idempotency-key", "row-0");
    send(request.header("content-type", JSON).body(good()))
        .await
        .is(201);
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
        .problem(409, "sold-out");
    assert_eq!(
        short.body["lines"],
        json!([
            { "event_id": "small", "requested": 6, "available": 5, "may_return": false }
        ])
    );
    door.assert_untouched(&event).await;

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
        .problem(422, "limit-reached");
    door.assert_untouched(&limited).await;
    suite.stop().await;
}
