//! What a node keeps and takes has an end.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use futures::StreamExt as _;
use lock_core::WaitMs;
use lock_pipe::Call;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::*;
use crate::NodeFaults;
use crate::http::{Api, Tokens, router};
use crate::raft::log::device::LogDevice as _;
use crate::raft::log::disk::DiskLog;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_ends_a_snapshot_or_two_behind_the_present() {
    let mut cluster = Cluster::start(1).await;
    let service = cluster.lead().await;
    for _ in 0..6 * SNAPSHOT_EVERY {
        service.propose(Command::Expire).await.unwrap();
    }
    eventually(SOON, "a snapshot of nearly all of it", async || {
        let status = service.status();
        (status.snapshot? + 2 * SNAPSHOT_EVERY > status.applied?).then_some(())
    })
    .await;
    cluster.stop(0).await;
    let log = DiskLog::open(&cluster.dirs[0].path().join("log"), NodeFaults::new(false, &[])).unwrap();
    let state = log.state();
    let kept = state.last.unwrap().index - state.purged.unwrap().index;
    assert!(kept < 4 * SNAPSHOT_EVERY, "{kept} entries were kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_full_of_waiting_acquires_refuses_the_next_and_still_keeps_sessions_alive() {
    let cluster = Cluster::start(1).await;
    let service = cluster.lead().await;
    let session_id = open_session(service, 60_000).await;
    let tokens = Tokens {
        client: None,
        admin: None,
    };
    let api = Api::new(service.clone(), tokens, CancellationToken::new());
    let router = router(api.clone(), service_kit::Faults::disabled());
    let post = |path: &str, body: &str| {
        let request = Request::post(format!("/v1/sessions/{session_id}/{path}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_owned()))
            .unwrap();
        router.clone().oneshot(request)
    };
    let events = || {
        let request = Request::get("/v1/events?from=0").body(Body::empty()).unwrap();
        router.clone().oneshot(request)
    };
    let piped_acquire = Call::Acquire {
        session_id,
        acquire_id: AcquireId::new(2),
        names: LockNames::parse(&["piped"]).unwrap(),
        wait: WaitMs::ZERO,
    };
    let keep_alive = Call::KeepAlive {
        session_id,
        acknowledged: None,
    };
    let acquire = r#"{ "acquire_id": 1, "names": ["gate"], "wait_ms": 0 }"#;

    let full = api.fill_up();
    let refused = post("acquisitions", acquire).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    assert_eq!(post("keep-alive", "{}").await.unwrap().status(), StatusCode::OK);
    drop(full);

    let full = api.fill_connections();
    let refused = api.over_a_pipe(piped_acquire).await.unwrap_err();
    assert_eq!((refused.status, refused.slug.as_str()), (503, "overloaded"));
    assert!(
        api.over_a_pipe(keep_alive).await.is_ok(),
        "nobody is kept waiting by it"
    );
    let refused = post("acquisitions", acquire).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(events().await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(post("keep-alive", "{}").await.unwrap().status(), StatusCode::OK);
    drop(full);
    assert_eq!(
        post("acquisitions", acquire).await.unwrap().status(),
        StatusCode::CREATED
    );

    // A stream has its place until it ends.
    let mut stream = events().await.unwrap().into_body().into_data_stream();
    assert!(stream.next().await.is_some(), "it is under way");
    let room = || api.fill_connections().len();
    let with_a_stream = room();
    drop(stream);
    eventually(SOON, "its place to be free", async || {
        (room() == with_a_stream + 1).then_some(())
    })
    .await;
}
