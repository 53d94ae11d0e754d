//! What is wrong with a call is said, and nothing is charged.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Ask, Totals, World, eur, payment};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_and_nothing_is_charged() {
    let db = testkit::sqlite();
    let world = World::start(&db).await;
    let with = |field: &str, value: Value| {
        let mut body = payment("card_ok");
        body[field] = value;
        body
    };
    let amount = |value: Value| with("amount", json!({"amount_minor": value, "currency": "EUR"}));
    let bad_payments = [
        (with("card", json!("card_unknown")), "/card"),
        (with("card", Value::Null), "/card"),
        (with("buyer", json!("")), "/buyer"),
        (with("buyer", json!("b".repeat(129))), "/buyer"),
        (amount(json!(-1)), "/amount"),
        (amount(json!(1.5)), "/amount/amount_minor"),
        (amount(json!("1")), "/amount/amount_minor"),
        (amount(Value::Null), "/amount/amount_minor"),
        (amount(json!(1_u64 << 63)), "/amount/amount_minor"),
        (
            with("amount", json!({"amount_minor": 1, "currency": "XYZ1"})),
            "/amount/currency",
        ),
        (json!({}), "/buyer"),
        (json!([]), ""),
    ];
    for (body, pointer) in bad_payments {
        let answer = world
            .call(Method::PUT, "/v1/payments/p-1")
            .json(&body)
            .answer()
            .await;
        assert_eq!(answer.problem(), (400, "invalid-request"), "{body}");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{body}");
    }

    let put = |path: &str| world.call(Method::PUT, path);
    let unknown_strategy = world
        .put("p-1", "card_ok")
        .header("lock-strategy", "mutex")
        .answer()
        .await;
    assert_eq!(unknown_strategy.problem(), (400, "unknown-strategy"));
    assert!(
        unknown_strategy.body["known"]
            .as_array()
            .is_some_and(|known| known.len() > 5)
    );
    let not_built_in = world
        .put("p-1", "card_ok")
        .header("lock-strategy", "redis")
        .answer()
        .await;
    assert_eq!(not_built_in.problem(), (503, "strategy-unavailable"));
    assert!(not_built_in.is_busy());
    let bad_key = world
        .put("p-1", "card_ok")
        .header("payment-key", "rusty")
        .answer()
        .await;
    assert_eq!(bad_key.problem(), (400, "invalid-request"));
    let bad_id = put("/v1/payments/P%201").json(&payment("card_ok")).answer().await;
    assert_eq!(bad_id.problem(), (400, "invalid-request"));
    let broken = put("/v1/payments/p-1")
        .header("content-type", "application/json")
        .body("{")
        .answer()
        .await;
    assert_eq!(broken.problem(), (400, "invalid-request"));
    let no_type = put("/v1/payments/p-1").body("{}").answer().await;
    assert_eq!(no_type.problem(), (415, "unsupported-media-type"));
    let long = "x".repeat(1_000_000);
    let too_long = put("/v1/payments/p-1")
        .json(&with("buyer", json!(long)))
        .answer()
        .await;
    assert_eq!(too_long.status, 413);
    assert_eq!(world.call(Method::GET, "/v1/nothing").answer().await.status, 404);
    assert_eq!(
        world
            .call(Method::DELETE, "/v1/payments/p-1")
            .answer()
            .await
            .status,
        405
    );

    for (body, pointer) in [
        (json!({"id": "r-1", "amount": eur(0)}), "/amount/amount_minor"),
        (json!({"id": "r-1", "amount": eur(-1)}), "/amount"),
        (json!({"id": "R 1", "amount": eur(1)}), "/id"),
        (json!({"amount": eur(1)}), "/id"),
    ] {
        let call = world.call(Method::POST, "/v1/payments/p-1/refunds");
        let answer = call.json(&body).answer().await;
        assert_eq!(answer.problem(), (400, "invalid-request"), "{body}");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{body}");
    }
    let ids: Vec<_> = (0..1001).map(|n| format!("p-{n}")).collect();
    let call = world
        .call(Method::POST, "/v1/audit-records")
        .json(&json!({"payment_ids": ids}));
    assert_eq!(call.answer().await.problem(), (400, "invalid-request"));

    assert_eq!(world.get("p-1").await.problem(), (404, "payment-not-found"));
    assert_eq!(world.ledger("p-1").await, Totals::default());
    world.stop().await;
}
