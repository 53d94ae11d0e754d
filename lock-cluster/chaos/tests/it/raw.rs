//! A client without a library: it keeps nothing alive and asks nothing again.

use std::time::Duration;

use lock_chaos::cluster::Cluster;
use lock_client::{ClientConfig, LockClient};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::time::Instant;
use uuid::Uuid;

/// How long a session that is dead may live beyond its TTL: looking whether somebody is, and the log entry that says so.
pub(crate) const EXPIRY: Duration = Duration::from_secs(1);
/// Long enough for whatever has to come.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A session that is opened and never kept alive.
#[derive(Clone)]
pub(crate) struct RawSession {
    http: Client,
    url: String,
    id: Uuid,
    /// From before it was opened.
    pub(crate) opened: Instant,
}

impl RawSession {
    /// Opens one at the leader.
    pub(crate) async fn open(cluster: &Cluster, ttl: Duration) -> Self {
        let leader = cluster.wait_for_leader(SOON).await.expect("a leader");
        Self::open_at(cluster.url(leader), ttl).await
    }

    /// Opens one at this node, which leads.
    pub(crate) async fn open_at(url: String, ttl: Duration) -> Self {
        let http = Client::builder().no_proxy().build().unwrap();
        let id = Uuid::new_v4();
        let opened = Instant::now();
        let body = json!({ "ttl_ms": ttl.as_millis() as u64, "label": "raw" });
        let answer = http
            .put(format!("{url}/v1/sessions/{id}"))
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        Self {
            http,
            url,
            id,
            opened,
        }
    }

    /// Asks for a lock under the number 1, and waits for whatever is answered.
    pub(crate) async fn acquire(&self, name: &str, wait: Duration) -> (StatusCode, Value) {
        let url = format!("{}/v1/sessions/{}/acquisitions", self.url, self.id);
        let body = json!({ "acquire_id": 1, "names": [name], "wait_ms": wait.as_millis() as u64 });
        let answer = self.http.post(url).json(&body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }
}

/// A client that keeps its session alive.
pub(crate) async fn client(cluster: &Cluster, label: &str, ttl: Duration) -> LockClient {
    let config = ClientConfig {
        ttl,
        label: label.to_owned(),
        ..cluster.client_config()
    };
    LockClient::connect(config).await.unwrap()
}

/// Waits until so many stand in line.
pub(crate) async fn until_waiters(cluster: &Cluster, name: &str, count: usize) {
    let questions = cluster.questions().unwrap();
    eventually(SOON, &format!("{count} waiters for {name}"), async || {
        let lock = questions.lock(name).await.ok().flatten();
        lock.filter(|lock| lock.waiters_total == count).map(drop)
    })
    .await;
}

/// Waits until nobody holds or wants a lock, and says when that was seen.
pub(crate) async fn until_free(cluster: &Cluster, name: &str, within: Duration) -> Instant {
    let questions = cluster.questions().unwrap();
    eventually(within, &format!("{name} to be free"), async || {
        matches!(questions.lock(name).await, Ok(None)).then(Instant::now)
    })
    .await
}
