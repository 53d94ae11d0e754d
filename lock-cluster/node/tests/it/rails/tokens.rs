//! The clients' token, and what is never said.

use lock_client::{ClusterClient, LockClient};
use reqwest::Method;
use uuid::Uuid;

use super::{ADMIN_TOKEN, CLIENT_TOKEN, Fleet, PEER_SECRET, SOON};
use crate::api::Api;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_client_token_answers_nobody_else_and_no_secret_is_ever_shown() {
    let mut fleet = Fleet::of(1);
    fleet.set("LOCK_NODE_CLIENT_TOKEN", CLIENT_TOKEN);
    fleet.set("LOCK_NODE_ADMIN_TOKEN", ADMIN_TOKEN);
    fleet.set("RUST_LOG", "debug");
    fleet.start_all().await;

    let session = format!("/v1/sessions/{}", Uuid::new_v4());
    let acquisitions = format!("{session}/acquisitions");
    let api = Api::new(fleet.urls());
    for (method, path) in [
        (Method::PUT, session.as_str()),
        (Method::DELETE, session.as_str()),
        (Method::POST, acquisitions.as_str()),
        (Method::GET, "/v1/pipe"),
        (Method::GET, "/v1/locks"),
        (Method::GET, "/v1/locks/gate"),
        (Method::POST, "/v1/locks/gate/break"),
        (Method::GET, "/v1/events"),
        (Method::GET, "/v1/cluster"),
        (Method::POST, "/v1/cluster/members"),
    ] {
        let reply = api.lead(method, path, None).await;
        reply.expect_problem(401, "unauthorized");
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        api.get(path).await.expect(200);
    }

    // A wrong token, the right one, the administrators'.
    let wrong = ClusterClient::new(fleet.client_config(Some("guess"))).expect("a client");
    assert!(wrong.locks("", 1).await.is_err());
    for token in [CLIENT_TOKEN, ADMIN_TOKEN] {
        let client = LockClient::connect(fleet.client_config(Some(token)))
            .await
            .expect("a session");
        let grant = client.acquire(&["gate".to_owned()], SOON).await.expect("granted");
        let breaking = ClusterClient::new(fleet.client_config(Some(token))).expect("a client");
        let broken = breaking.break_lock("gate", grant.fencing_token()).await;
        assert_eq!(broken.is_ok(), token == ADMIN_TOKEN, "clients do not administer");
        client.close().await;
    }

    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let said = async |path: &str| {
        let request = http
            .get(format!("{}{path}", fleet.url(0)))
            .bearer_auth(CLIENT_TOKEN);
        let response = request.send().await.expect("it answers");
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.expect("text")
    };
    let arguments = std::fs::read(format!("/proc/{}/cmdline", fleet.pid(0))).expect("it runs");
    let shown = [
        ("its log", fleet.log(0)),
        ("the cluster's status", said("/v1/cluster").await),
        ("its metrics", said("/metrics").await),
        ("its description", said("/openapi.json").await),
        (
            "the list of processes",
            String::from_utf8_lossy(&arguments).into_owned(),
        ),
    ];
    for (place, text) in shown {
        assert!(!text.is_empty(), "{place} is empty");
        for secret in [PEER_SECRET, ADMIN_TOKEN, CLIENT_TOKEN] {
            assert!(!text.contains(secret), "{secret:?} is in {place}");
        }
    }
}
