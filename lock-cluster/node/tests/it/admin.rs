//! Breaking locks, and who may.

use std::time::Duration;

use lock_client::LockError;
use reqwest::Method;
use serde_json::json;
use testkit::eventually;

use crate::api::until_waiters;
use crate::cluster::{ADMIN_TOKEN, Cluster, SOON};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_administrator_breaks_a_lock() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    let token = session.granted(1, &["a/b"], 0).await;
    let body = json!({ "fencing_token": token });
    cluster
        .api
        .lead(Method::POST, "/v1/locks/a/b/break", Some(&body))
        .await
        .expect_problem(401, "unauthorized");
    let url = format!("{}/v1/locks/a/b/break", cluster.url(0));
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let wrong = http
        .post(&url)
        .bearer_auth("let me in?")
        .json(&body)
        .send()
        .await
        .expect("it answers");
    assert_eq!(wrong.status(), 401);
    assert_eq!(wrong.headers()[reqwest::header::WWW_AUTHENTICATE], "Bearer");
    session.granted(1, &["a/b"], 0).await;
    let right = http
        .post(&url)
        .bearer_auth(ADMIN_TOKEN)
        .json(&body)
        .send()
        .await
        .expect("it answers");
    assert_eq!(right.status(), 200);
    let over = session
        .acquire(1, &["a/b"], 0)
        .await
        .expect_problem(409, "already-released");
    assert_eq!(over["reason"], "broken");
    let alive = session.keep_alive(None).await.expect(200);
    assert_eq!(alive["broken"], json!([1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_break_hits_the_holder_it_means_and_nobody_else() {
    let cluster = Cluster::start(3).await;
    let admin = cluster.admin();
    let client = cluster.client("a holder", Duration::from_secs(3)).await;
    let names = ["gate".to_owned(), "yard".to_owned()];
    let grant = client.acquire(&names, Duration::ZERO).await.expect("granted");
    let waiter = cluster.session().await;
    let next = tokio::spawn(async move { waiter.granted(1, &["gate"], 30_000).await });
    until_waiters(&cluster.api, "gate", 1).await;

    let stale = admin.break_lock("gate", grant.fencing_token() - 1).await;
    assert!(
        matches!(stale, Err(LockError::Invalid { ref slug, .. }) if slug == "stale-fencing-token"),
        "{stale:?}"
    );
    assert!(!grant.is_lost());

    let broken = admin
        .break_lock("gate", grant.fencing_token())
        .await
        .expect("broken");
    assert_eq!(
        broken["names"],
        json!(names),
        "what was granted together is broken together"
    );
    let token = next.await.expect("the next one is granted");
    assert!(token > grant.fencing_token());
    // The holder hears of it with its next keep-alive; its session lives on.
    tokio::time::timeout(SOON, grant.lost())
        .await
        .expect("it hears of it");
    assert!(grant.is_broken());
    let other = client
        .acquire(&["yard".to_owned()], Duration::ZERO)
        .await
        .expect("the session lives");
    other.release().await.expect("released");
    drop(grant);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_sees_every_member() {
    let cluster = Cluster::start(3).await;
    let admin = cluster.admin();
    let status = eventually(SOON, "a leader that sees its followers in step", async || {
        let leader = cluster.url(cluster.leader().await);
        let status = admin.status_of(&leader).await.ok()?;
        let in_step = status.replication.iter().all(|follower| follower.lag == Some(0));
        (in_step && status.replication.len() == 2).then_some(status)
    })
    .await;
    assert_eq!(status.members.len(), 3);
    assert!(status.members.iter().all(|member| member.voter));
    assert!(admin.lock("free").await.expect("an answer").is_none());
    assert!(admin.locks("", 10).await.expect("an answer").locks.is_empty());
}
