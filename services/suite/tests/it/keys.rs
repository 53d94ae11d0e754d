//! The `Idempotency-Key` and the other headers of a purchase: what is refused, and what a key stands for.

use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::eventually;

use crate::support::AllInOne;
use crate::support::door::{assert_kept, send};

const REST_WITHIN: Duration = Duration::from_secs(20);

/// One ticket for the show.
fn wish() -> Value {
    json!({ "buyer": "bob", "items": [{ "event_id": "show", "quantity": 1 }], "card": "card_ok" })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_header_is_refused() {
    let suite = AllInOne::on_sqlite().await;
    let door = &suite.door;
    let event = door.event("show", 10).await;
    let bare = || door.request(Method::POST, "/v1/purchases").json(&wish());
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
        reply.problem(400, slug);
    }
    door.assert_untouched(&event).await;

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
        .problem(422, "idempotency-key-reused");
    let running = buy("k", order("bob", 1, "card_ok"))
        .await
        .problem(409, "purchase-in-progress");
    assert!(running.header("retry-after").is_some());

    // When it is over.
    let first = first.await.unwrap().is(201);
    assert_eq!(first.header("idempotent-replayed"), None);
    buy("k", order("bob", 2, "card_ok"))
        .await
        .problem(422, "idempotency-key-reused");
    buy("k", order("bob", 1, "card_slow"))
        .await
        .problem(422, "idempotency-key-reused");
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
        .problem(402, "payment-declined");
    let again = buy("d", order("bob", 1, "card_declined"))
        .await
        .problem(402, "payment-declined");
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    buy("d2", order("bob", 1, "card_ok")).await.is(201);

    let audit = door.at_rest(&event, REST_WITHIN).await;
    assert_kept(&audit);
    assert_eq!((audit.sold, audit.charged, audit.purchases.declined), (3, 3, 1));
    suite.stop().await;
}
