//! Each bad request: its status, its slug, and nothing held afterwards.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cluster::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_with_a_wrong_ttl_is_refused() {
    let cluster = Cluster::start(1).await;
    let ttls = [
        json!(0),
        json!(-1),
        json!(499),
        json!(300_001),
        json!(9_223_372_036_854_775_808_u64),
        serde_json::from_str("1e30").expect("a number"),
        json!(1000.5),
        json!("1000"),
        Value::Null,
    ];
    for ttl_ms in ttls {
        let path = format!("/v1/sessions/{}", Uuid::new_v4());
        let body = json!({ "ttl_ms": ttl_ms, "label": "" });
        let problem = cluster
            .api
            .lead(Method::PUT, &path, Some(&body))
            .await
            .expect_problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "/ttl_ms", "{ttl_ms}");
    }
    let path = format!("/v1/sessions/{}", Uuid::new_v4());
    let body = json!({ "ttl_ms": 5000, "label": "x".repeat(129) });
    let problem = cluster
        .api
        .lead(Method::PUT, &path, Some(&body))
        .await
        .expect_problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/label");
    for ttl_ms in [500, 300_000] {
        let path = format!("/v1/sessions/{}", Uuid::new_v4());
        let body = json!({ "ttl_ms": ttl_ms, "label": "x".repeat(128) });
        cluster
            .api
            .lead(Method::PUT, &path, Some(&body))
            .await
            .expect(201);
    }
    assert_eq!(cluster.counts().await.0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_acquire_is_refused_and_holds_nothing() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    let path = format!("{}/acquisitions", session.path());
    let names17: Vec<String> = (0..17).map(|number| format!("name/{number}")).collect();
    let wrong = [
        (
            json!({ "acquire_id": 1, "names": ["a"], "wait_ms": -1 }),
            "/wait_ms",
        ),
        (
            json!({ "acquire_id": 1, "names": ["a"], "wait_ms": 60_001 }),
            "/wait_ms",
        ),
        (json!({ "acquire_id": 1, "names": ["a"] }), "/wait_ms"),
        (json!({ "acquire_id": 1, "names": [], "wait_ms": 0 }), "/names"),
        (
            json!({ "acquire_id": 1, "names": names17, "wait_ms": 0 }),
            "/names",
        ),
        (json!({ "acquire_id": 1, "names": "a", "wait_ms": 0 }), "/names"),
        (
            json!({ "acquire_id": 1, "names": [""], "wait_ms": 0 }),
            "/names/0",
        ),
        (
            json!({ "acquire_id": 1, "names": ["a", "x".repeat(257)], "wait_ms": 0 }),
            "/names/1",
        ),
        (json!({ "acquire_id": 1, "names": [7], "wait_ms": 0 }), "/names/0"),
        (
            json!({ "acquire_id": -1, "names": ["a"], "wait_ms": 0 }),
            "/acquire_id",
        ),
        (
            json!({ "acquire_id": "1", "names": ["a"], "wait_ms": 0 }),
            "/acquire_id",
        ),
        (json!([]), ""),
        (json!([1, ["a"], 0]), ""),
    ];
    for (body, pointer) in wrong {
        let reply = cluster.api.lead(Method::POST, &path, Some(&body)).await;
        let problem = reply.expect_problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
    }
    for id in ["x", "-1", "18446744073709551616"] {
        let reply = cluster
            .api
            .lead(Method::DELETE, &format!("{path}/{id}"), None)
            .await;
        let problem = reply.expect_problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "/acquire_id", "{id}");
    }
    // A name given twice counts once; 256 bytes are enough for everybody.
    let long = "é".repeat(128);
    let body = json!({ "acquire_id": 2, "names": [long, long], "wait_ms": 60_000 });
    let granted = cluster
        .api
        .lead(Method::POST, &path, Some(&body))
        .await
        .expect(201);
    assert_eq!(granted["names"], json!([long]));
    session.release(2).await.expect(204);
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_never_opened_or_acquired_cannot_be_used() {
    let cluster = Cluster::start(1).await;
    let stranger = crate::api::Session {
        api: cluster.api.clone(),
        id: Uuid::new_v4(),
    };
    stranger
        .keep_alive(None)
        .await
        .expect_problem(410, "session-expired");
    stranger
        .acquire(1, &["a"], 0)
        .await
        .expect_problem(410, "session-expired");
    stranger.release(1).await.expect_problem(410, "session-expired");
    stranger.close().await.expect(204);
    let session = cluster.session().await;
    session.release(7).await.expect_problem(404, "not-held");
    // The id is used up: an acquire that was overtaken on its way is not granted any more.
    session
        .acquire(7, &["a"], 0)
        .await
        .expect_problem(409, "already-released");
    session.close().await.expect(204);
    session
        .acquire(8, &["a"], 0)
        .await
        .expect_problem(410, "session-expired");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_methods_and_bodies_that_are_wrong_get_a_problem() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    let api = &cluster.api;
    api.get("/v1/nothing").await.expect_problem(404, "not-found");
    api.get("/").await.expect_problem(404, "not-found");
    api.get(&format!("{}/acquisitions", session.path()))
        .await
        .expect_problem(405, "method-not-allowed");
    api.lead(Method::PATCH, "/v1/locks", None)
        .await
        .expect_problem(405, "method-not-allowed");
    api.get("/v1/locks/").await.expect_problem(400, "invalid-request");
    api.get(&format!("/v1/locks/{}", "x".repeat(257)))
        .await
        .expect_problem(400, "invalid-request");
    api.get("/v1/locks?limit=0")
        .await
        .expect_problem(400, "invalid-request");
    api.get("/v1/locks?limit=1001")
        .await
        .expect_problem(400, "invalid-request");
    api.get("/v1/locks?limit=many")
        .await
        .expect_problem(400, "invalid-request");
    api.get("/v1/events?from=-1")
        .await
        .expect_problem(400, "invalid-request");
    let open = json!({ "ttl_ms": 5000, "label": "" });
    api.lead(Method::PUT, "/v1/sessions/no-uuid", Some(&open))
        .await
        .expect_problem(400, "invalid-request");
    api.lead(
        Method::DELETE,
        &format!("{}/acquisitions/one", session.path()),
        None,
    )
    .await
    .expect_problem(400, "invalid-request");
    let (status, answer) = api.raw(&cluster.url(0), "GET", "/v1/locks/%FF").await;
    assert!(status == 400 && answer.contains("invalid-request"), "{answer}");

    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("{}{}", cluster.url(0), session.path());
    let send = async |content_type: &str, body: String| {
        let request = http.put(&url).header("content-type", content_type).body(body);
        let response = request.send().await.expect("it answers");
        let status = response.status().as_u16();
        (
            status,
            response.json::<Value>().await.expect("a problem")["type"]
                .as_str()
                .map(str::to_owned),
        )
    };
    let (status, kind) = send("application/json", "{\"ttl_ms\": 50".to_owned()).await;
    assert_eq!(
        (status, kind.as_deref()),
        (400, Some("/problems/invalid-request"))
    );
    let (status, kind) = send("text/plain", "{\"ttl_ms\": 5000}".to_owned()).await;
    assert_eq!(
        (status, kind.as_deref()),
        (415, Some("/problems/unsupported-media-type"))
    );
    let (status, kind) = send("application/json", format!("\"{}\"", "x".repeat(1 << 20))).await;
    assert_eq!((status, kind.as_deref()), (413, Some("/problems/body-too-large")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_tells_about_itself() {
    let cluster = Cluster::start(3).await;
    let follower = cluster.url(cluster.follower().await);
    let api = &cluster.api;
    let get = async |path: &str| {
        api.once(Method::GET, &format!("{follower}{path}"), None)
            .await
            .expect("it answers")
    };
    get("/healthz").await.expect(200);
    get("/readyz").await.expect(200);
    let document = get("/openapi.json").await.expect(200);
    for path in [
        "/v1/sessions/{session_id}/acquisitions",
        "/v1/locks/{name}/break",
        "/v1/events",
    ] {
        assert!(document["paths"][path].is_object(), "{path} is described");
    }
    let status = get("/v1/cluster").await.expect(200);
    assert_eq!(status["role"], "follower");
    assert_eq!(status["leader"], cluster.leader().await + 1);
    assert_eq!(status["members"].as_array().map(Vec::len), Some(3));
    let (code, metrics) = api.raw(&follower, "GET", "/metrics").await;
    assert_eq!(code, 200);
    assert!(
        metrics.contains("raft_term{") && metrics.contains("lock_sessions{"),
        "{metrics}"
    );
    let leader = cluster.url(cluster.leader().await);
    let status = api
        .once(Method::GET, &format!("{leader}/v1/cluster"), None)
        .await
        .expect("it answers")
        .expect(200);
    assert_eq!(status["replication"].as_array().map(Vec::len), Some(2));
    assert!(
        !status.to_string().contains("secret") && !status.to_string().contains(crate::cluster::ADMIN_TOKEN)
    );
}
