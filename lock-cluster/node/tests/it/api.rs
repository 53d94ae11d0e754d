//! The client port over plain HTTP: what a curl user sees, statuses and bodies as they are.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::cluster::SOON;

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
}

impl Reply {
    /// The last segment of a problem's type; empty if it is no problem.
    pub(crate) fn slug(&self) -> &str {
        self.body["type"]
            .as_str()
            .and_then(|kind| kind.strip_prefix("/problems/"))
            .unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }

    #[track_caller]
    pub(crate) fn expect_problem(self, status: u16, slug: &str) -> Value {
        assert_eq!(
            (self.status.as_u16(), self.slug()),
            (status, slug),
            "{}",
            self.body
        );
        for member in ["title", "detail", "instance"] {
            assert!(
                self.body[member].is_string(),
                "a problem has a {member}: {}",
                self.body
            );
        }
        assert_eq!(self.body["status"], status);
        if status == 503 || status == 429 {
            assert!(
                self.retry_after.is_some(),
                "{status} comes with Retry-After: {}",
                self.body
            );
        }
        self.body
    }
}

/// A plain HTTP client that knows all nodes.
#[derive(Clone)]
pub(crate) struct Api {
    http: Client,
    urls: Vec<String>,
}

impl Api {
    pub(crate) fn new(urls: Vec<String>) -> Self {
        let http = Client::builder()
            .no_proxy()
            .build()
            .expect("a client without TLS");
        Self { http, urls }
    }

    /// One request to one node, once.
    pub(crate) async fn once(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<Reply> {
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        read(request.send().await?).await
    }

    /// One request to whoever leads: other nodes are asked until one answers for itself.
    pub(crate) async fn lead(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        // A loop of its own: `eventually` takes a closure that borrows, and such a future cannot be spawned.
        let begun = Instant::now();
        loop {
            for url in &self.urls {
                let Ok(reply) = self.once(method.clone(), &format!("{url}{path}"), body).await else {
                    continue;
                };
                if !matches!(
                    reply.slug(),
                    "not-leader" | "no-leader" | "outcome-unknown" | "shutting-down"
                ) {
                    return reply;
                }
            }
            assert!(begun.elapsed() < SOON, "nobody answers {method} {path}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.lead(Method::GET, path, None).await
    }

    pub(crate) async fn open_session(&self, ttl: Duration) -> Session {
        let id = Uuid::new_v4();
        let body = json!({ "ttl_ms": ttl.as_millis() as u64, "label": "a test" });
        self.lead(Method::PUT, &format!("/v1/sessions/{id}"), Some(&body))
            .await
            .expect(201);
        Session {
            api: self.clone(),
            id,
        }
    }

    /// A request with its path exactly as written, which URL libraries do not allow.
    pub(crate) async fn raw(&self, url: &str, method: &str, path: &str) -> (u16, String) {
        let addr = url.strip_prefix("http://").expect("a plain URL");
        let mut stream = TcpStream::connect(addr).await.expect("the node listens");
        let request = format!("{method} {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it is answered");
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status line");
        (status, answer)
    }
}

async fn read(response: reqwest::Response) -> reqwest::Result<Reply> {
    let status = response.status();
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let (retry_after, content_type) = (header("retry-after"), header("content-type"));
    let body = response.bytes().await?;
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap_or(Value::Null)
    };
    if status.is_client_error() || status.is_server_error() {
        assert_eq!(
            content_type.as_deref(),
            Some("application/problem+json"),
            "{status} {body}"
        );
    }
    Ok(Reply {
        status,
        retry_after,
        body,
    })
}

/// A session whose every step is one visible request.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) api: Api,
    pub(crate) id: Uuid,
}

impl Session {
    pub(crate) fn path(&self) -> String {
        format!("/v1/sessions/{}", self.id)
    }

    pub(crate) fn acquire_body(acquire_id: u64, names: &[&str], wait_ms: u64) -> Value {
        json!({ "acquire_id": acquire_id, "names": names, "wait_ms": wait_ms })
    }

    pub(crate) async fn acquire(&self, acquire_id: u64, names: &[&str], wait_ms: u64) -> Reply {
        let body = Self::acquire_body(acquire_id, names, wait_ms);
        self.api
            .lead(
                Method::POST,
                &format!("{}/acquisitions", self.path()),
                Some(&body),
            )
            .await
    }

    /// The fencing token of a grant.
    pub(crate) async fn granted(&self, acquire_id: u64, names: &[&str], wait_ms: u64) -> u64 {
        let body = self.acquire(acquire_id, names, wait_ms).await.expect(201);
        assert_eq!(body["acquire_id"], acquire_id);
        assert_eq!(body["names"], json!(names));
        body["fencing_token"].as_u64().expect("a token is a number")
    }

    pub(crate) async fn release(&self, acquire_id: u64) -> Reply {
        self.api
            .lead(
                Method::DELETE,
                &format!("{}/acquisitions/{acquire_id}", self.path()),
                None,
            )
            .await
    }

    pub(crate) async fn keep_alive(&self, acknowledged: Option<u64>) -> Reply {
        let body = json!({ "acknowledged": acknowledged });
        self.api
            .lead(Method::POST, &format!("{}/keep-alive", self.path()), Some(&body))
            .await
    }

    pub(crate) async fn close(&self) -> Reply {
        self.api.lead(Method::DELETE, &self.path(), None).await
    }
}

/// How many wait for a lock, by the cluster's own account.
pub(crate) async fn waiters(api: &Api, name: &str) -> usize {
    let lock = api.get(&format!("/v1/locks/{name}")).await.expect(200);
    lock["waiters"].as_array().expect("a list").len()
}

/// Waits until so many wait for a lock.
pub(crate) async fn until_waiters(api: &Api, name: &str, count: usize) {
    eventually(SOON, &format!("{count} waiters for {name}"), async || {
        (waiters(api, name).await == count).then_some(())
    })
    .await;
}
