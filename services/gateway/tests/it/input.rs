//! What is wrong with a call is said, and nothing is charged.

use serde_json::{Value, json};

use crate::support::{Gateway, authorization, eur};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_and_nothing_is_charged() {
    let db = testkit::sqlite();
    let gateway = Gateway::start(&db).await;
    let with = |field: &str, value: Value| {
        let mut body = authorization("k-1", "p-1", "card_ok");
        body[field] = value;
        body
    };
    let references: Vec<_> = (0..1001).map(|n| format!("p-{n}")).collect();
    let bad = [
        ("/v1/authorizations", with("key", json!("")), "/key"),
        ("/v1/authorizations", with("key", json!("k".repeat(256))), "/key"),
        ("/v1/authorizations", with("key", json!("schlüssel")), "/key"),
        ("/v1/authorizations", with("key", json!(7)), "/key"),
        (
            "/v1/authorizations",
            with("reference", json!("P 1")),
            "/reference",
        ),
        (
            "/v1/authorizations",
            with("card", json!("4111111111111111")),
            "/card",
        ),
        ("/v1/authorizations", with("amount", eur(-1)), "/amount"),
        (
            "/v1/authorizations",
            with("amount", json!({"amount_minor": 1.5, "currency": "EUR"})),
            "/amount/amount_minor",
        ),
        (
            "/v1/authorizations",
            with("amount", json!({"amount_minor": 1, "currency": "eur"})),
            "/amount/currency",
        ),
        ("/v1/captures", json!({"key": "k"}), "/reference"),
        (
            "/v1/ledger/lookup",
            json!({"references": references}),
            "/references",
        ),
    ];
    for (path, body, pointer) in bad {
        let answer = gateway.answer(path, body.clone()).await;
        assert_eq!(answer.problem(), (400, "invalid-request"), "{path} {body}");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{path} {body}");
    }
    assert_eq!(gateway.totals("p-1").await, None);

    let unknown = gateway.capture("k-2", "p-1", "no-such-authorization").await;
    assert_eq!(unknown.problem(), (404, "authorization-not-found"));
    let other = json!({"key": "r-1", "reference": "p-1", "amount": eur(1)});
    assert_eq!(
        gateway.answer("/v1/refunds", other).await.problem(),
        (422, "over-refund")
    );
    assert_eq!(gateway.totals("p-1").await, None);
    gateway.stop().await;
}
