//! A lock cluster that wants a token of its clients: whoever has it sells, whoever has not is told so, and nobody who
//! looks on gets to see it.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use service_kit::{Running, Secret};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::AllInOne;
use crate::support::door::{Door, assert_kept, send};

const TOKEN: &str = "what-the-clients-say";
const SOON: Duration = Duration::from_secs(30);

fn token() -> Secret {
    Secret::new(TOKEN).unwrap()
}

fn port(part: &Running) -> u16 {
    part.addr.port()
}

/// A wish for one seat, sent to the inventory at `port`.
fn hold(door: &Door, port: u16, event: &str, strategy: &str) -> RequestBuilder {
    let path = format!("/v1/holds/{}", Uuid::new_v4());
    door.request_on(port, Method::PUT, &path)
        .header("lock-strategy", strategy)
        .json(&json!({ "buyer": "ann", "items": [{ "event_id": event, "quantity": 1 }] }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_sells_over_a_cluster_that_wants_a_token_and_lends_it_to_nobody() {
    let suite = AllInOne::guarded_by(token()).await;
    let door = &suite.door;
    let event = door.event("gala", 3).await;
    let order =
        json!({ "buyer": "ann", "card": "card_ok", "items": [{ "event_id": "gala", "quantity": 2 }] });
    let bought = send(door.purchase("k-1", &order).header("lock-strategy", "raft")).await;
    bought.is(201);
    assert_kept(&door.at_rest(&event, SOON).await);

    // Through the front door or at a node: without the token nobody is a client.
    let session = format!("/v1/sessions/{}", Uuid::new_v4());
    for port in [door.ports().front_door, door.ports().lock_clients[0]] {
        let open = || {
            let open = door.request_on(port, Method::PUT, &session);
            open.json(&json!({ "ttl_ms": 5000 }))
        };
        send(open()).await.problem(401, "unauthorized");
        send(open().bearer_auth("a-guess"))
            .await
            .problem(401, "unauthorized");
        let look = || door.request_on(port, Method::GET, "/v1/locks");
        send(look()).await.problem(401, "unauthorized");
        send(look().bearer_auth(TOKEN)).await.is(200);
    }
    let open = door
        .request(Method::PUT, &session)
        .json(&json!({ "ttl_ms": 5000 }));
    send(open.bearer_auth(TOKEN)).await.is(201);

    let topology = door.get("/v1/topology").await.is(200).body;
    assert!(topology["cluster"]["leader"].is_u64(), "{topology}");
    let cluster = door.request(Method::GET, "/v1/cluster").bearer_auth(TOKEN);
    let cluster = send(cluster).await.is(200).body;
    for shown in [topology, cluster] {
        assert!(!shown.to_string().contains(TOKEN), "{shown}");
    }
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_without_the_token_says_503_and_sells_by_what_needs_no_cluster() {
    let suite = AllInOne::guarded_by(token()).await;
    let door = &suite.door;
    door.event("gala", 3).await;
    let lock_urls: Vec<_> = door
        .ports()
        .lock_clients
        .iter()
        .map(|port| format!("http://127.0.0.1:{port}"))
        .collect();
    for lock_token in [None, Secret::new("a-guess")] {
        let shutdown = CancellationToken::new();
        let database = format!("sqlite://{}", suite.data_dir().join("inventory.db").display());
        let stranger = inventory::Config {
            lock_urls: lock_urls.clone(),
            lock_token: lock_token.clone(),
            ..inventory::Config::new("inventory-3", database)
        };
        let stranger = inventory::start(stranger, shutdown.clone()).await.unwrap();
        let refused = send(hold(door, port(&stranger), "gala", "raft")).await;
        let refused = refused.problem(503, "lock-unavailable");
        assert_eq!(
            refused.header("retry-after"),
            Some("60"),
            "it does not pass by itself"
        );
        assert!(
            refused.body["detail"]
                .as_str()
                .unwrap()
                .contains("does not take this service"),
            "{}",
            refused.body
        );
        send(hold(door, port(&stranger), "gala", "atomic")).await.is(201);

        let stranger_door = boxoffice::Config {
            listen: ([127, 0, 0, 1], 0).into(),
            lock_nodes: lock_urls.clone(),
            lock_token,
            ..boxoffice::Config::default()
        };
        let stranger_door = boxoffice::start(stranger_door, shutdown.clone()).await.unwrap();
        let told = testkit::eventually(SOON, "a front door that is refused to say so", async || {
            let ready = send(door.request_on(port(&stranger_door), Method::GET, "/readyz")).await;
            let why = ready.body["checks"]["suite"]["detail"]
                .as_str()
                .unwrap_or_default();
            why.contains("LOCK_CLIENT_TOKEN").then_some(ready.status)
        })
        .await;
        assert_eq!(told, 503);
        shutdown.cancel();
        for part in [stranger, stranger_door] {
            part.join().await.unwrap();
        }
    }
    suite.stop().await;
}
