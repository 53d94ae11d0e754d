//! Looking at the cluster without a session: what tools need.

use std::fmt::Write;
use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::config::ClientConfig;
use crate::error::LockError;
use crate::events::{EventFeed, EventsFrom};
use crate::rest::{self, Success};
use crate::transport::{Body, Question, Transport};
use crate::wire::{self, ClusterStatus, Lock, LockList};

/// A question to the cluster is asked again for this long.
const ASK_WITHIN: Duration = Duration::from_secs(8);
/// A question to one node is given up after this.
const TRY: Duration = Duration::from_secs(2);
/// A change of the members is given up after this: a new voter has to catch up first.
const CHANGE_WITHIN: Duration = Duration::from_secs(60);
/// How long one node may take over it.
const CHANGE_TRY: Duration = Duration::from_secs(50);

/// A backup or a restore is given up after this.
const COPY_WITHIN: Duration = Duration::from_secs(120);
/// How long one node may take over it.
const COPY_TRY: Duration = Duration::from_secs(60);

/// Questions and administrative calls, for tools and dashboards.
#[derive(Debug)]
pub struct ClusterClient {
    transport: Transport,
}

impl ClusterClient {
    /// A client of the cluster at `config.urls`; the TTL and the label do not matter here.
    ///
    /// # Errors
    /// [`LockError::Invalid`] if there is no URL, or one that cannot be read.
    pub fn new(config: ClientConfig) -> Result<Self, LockError> {
        Ok(Self {
            transport: Transport::new(&config)?,
        })
    }

    /// The nodes this client was told of.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.transport.nodes().iter().map(|node| &**node)
    }

    /// What one node says about itself and the cluster.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if it does not answer.
    pub async fn status_of(&self, url: &str) -> Result<ClusterStatus, LockError> {
        let request = self
            .transport
            .request(Method::GET, &format!("{url}/v1/cluster"))
            .timeout(TRY);
        let silent = |why: String| LockError::unavailable(format!("{url}: {why}"));
        let status = rest::exchange(request, None).await.map_err(silent)??;
        status.read().map_err(silent)
    }

    /// The locks that are held or waited for, by name.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if no leader answers in time.
    pub async fn locks(&self, prefix: &str, limit: usize) -> Result<LockList, LockError> {
        let path = format!("/v1/locks?prefix={}&limit={limit}", encode(prefix));
        read(&self.ask(Method::GET, &path, None).await?)
    }

    /// One lock, or `None` if nobody holds or wants it.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if no leader answers in time.
    pub async fn lock(&self, name: &str) -> Result<Option<Lock>, LockError> {
        if let Some(query) = in_query(name) {
            let found = self.ask(Method::GET, &format!("/v1/locks?{query}"), None).await?;
            return Ok(read::<LockList>(&found)?.locks.pop());
        }
        let path = format!("/v1/locks/{}", encode(name));
        let lock: Lock = read(&self.ask(Method::GET, &path, None).await?)?;
        let free = lock.holder.is_none() && lock.waiters.is_empty();
        Ok(if free { None } else { Some(lock) })
    }

    /// Takes the lock away from the holder with this token, and from nobody else.
    ///
    /// # Errors
    /// [`LockError::Invalid`] if another token, or nobody, holds it, or if the caller is no administrator.
    pub async fn break_lock(&self, name: &str, fencing_token: u64) -> Result<Value, LockError> {
        let path = match in_query(name) {
            Some(query) => format!("/v1/locks/break?{query}"),
            None => format!("/v1/locks/{}/break", encode(name)),
        };
        self.change(
            Method::POST,
            &path,
            Some(serde_json::json!(wire::Break { fencing_token })),
        )
        .await
    }

    /// Adds a member to the cluster.
    ///
    /// # Errors
    /// As the cluster refuses it.
    pub async fn add_member(&self, member: &wire::AddMember) -> Result<Value, LockError> {
        let body = Some(serde_json::json!(member));
        self.change_members(Method::POST, "/v1/cluster/members", body)
            .await
    }

    /// Makes a member a voter, once it has caught up.
    ///
    /// # Errors
    /// As the cluster refuses it.
    pub async fn promote_member(&self, id: u64) -> Result<Value, LockError> {
        self.change_members(Method::POST, &format!("/v1/cluster/members/{id}/promote"), None)
            .await
    }

    /// Removes a member from the cluster.
    ///
    /// # Errors
    /// As the cluster refuses it.
    pub async fn remove_member(&self, id: u64) -> Result<Value, LockError> {
        self.change_members(Method::DELETE, &format!("/v1/cluster/members/{id}"), None)
            .await
    }

    /// Events of the cluster, read from any node that answers; every node tells the same.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if no node answers.
    pub async fn events(&self, from: EventsFrom<'_>) -> Result<EventFeed, LockError> {
        let mut last = LockError::unavailable("no node was asked");
        for node in self.transport.nodes() {
            // A deadline for the beginning only: a stream has no end.
            match timeout(TRY, self.events_of(node, from)).await {
                Ok(Ok(feed)) => return Ok(feed),
                Ok(Err(error)) => last = error,
                Err(_) => last = LockError::unavailable(format!("{node}: no answer in time")),
            }
        }
        Err(last)
    }

    async fn events_of(&self, node: &str, from: EventsFrom<'_>) -> Result<EventFeed, LockError> {
        let url = format!("{node}/v1/events");
        let request = match from {
            EventsFrom::Now => self.transport.request(Method::GET, &url),
            EventsFrom::Index(index) => self
                .transport
                .request(Method::GET, &format!("{url}?from={index}")),
            EventsFrom::Behind(id) => self
                .transport
                .request(Method::GET, &url)
                .header("Last-Event-ID", id),
        };
        let silent =
            |error: reqwest::Error| LockError::unavailable(format!("{node}: {}", rest::root_cause(&error)));
        let response = request.send().await.map_err(silent)?;
        let status = response.status();
        if status.is_success() {
            return Ok(EventFeed::new(response));
        }
        let body = response.bytes().await.map_err(silent)?;
        Err(wire::problem(status.as_u16(), &body).into())
    }

    /// The whole state as of now, as a file to keep: see [`ClusterClient::restore`].
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if no leader answers in time.
    pub async fn backup(&self) -> Result<Vec<u8>, LockError> {
        let copied = self.send(
            Method::GET,
            "/v1/cluster/backup",
            Body::None,
            COPY_TRY,
            COPY_WITHIN,
        );
        Ok(copied.await?.body)
    }

    /// Has all fencing tokens from now on be higher than those of the cluster that `file` is a backup of: above
    /// `token_floor`, or well above the backup's. Sessions and locks are not brought back.
    ///
    /// # Errors
    /// [`LockError::Invalid`] if the file is no backup, or the floor is below its tokens: nothing is changed then.
    pub async fn restore(&self, file: &[u8], token_floor: Option<u64>) -> Result<wire::Restored, LockError> {
        let query = token_floor.map(|floor| format!("?token_floor={floor}"));
        let path = format!("/v1/cluster/restore{}", query.unwrap_or_default());
        let restored = self.send(Method::POST, &path, Body::File(file), COPY_TRY, COPY_WITHIN);
        read(&restored.await?)
    }

    async fn change_members(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, LockError> {
        read(
            &self
                .ask_for(method, path, body, CHANGE_TRY, CHANGE_WITHIN)
                .await?,
        )
    }

    async fn change(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, LockError> {
        let success = self.ask(method, path, body).await?;
        if success.body.is_empty() {
            Ok(Value::Null)
        } else {
            read(&success)
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Success, LockError> {
        self.ask_for(method, path, body, TRY, ASK_WITHIN).await
    }

    async fn ask_for(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        timeout: Duration,
        within: Duration,
    ) -> Result<Success, LockError> {
        let body = body.as_ref().map_or(Body::None, Body::Json);
        self.send(method, path, body, timeout, within).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Body<'_>,
        timeout: Duration,
        within: Duration,
    ) -> Result<Success, LockError> {
        let question = Question { method, path, body };
        let answer = self
            .transport
            .ask(question, Instant::now() + within, timeout)
            .await?;
        Ok(answer.said?)
    }
}

fn read<T: DeserializeOwned>(success: &Success) -> Result<T, LockError> {
    success.read().map_err(LockError::unavailable)
}

/// A lock name that no path can carry, as a query: URL libraries resolve these two, encoded or not, before anything is
/// sent.
fn in_query(name: &str) -> Option<String> {
    matches!(name, "." | "..").then(|| format!("name={name}"))
}

/// A lock name as one path segment: everything but letters, digits, `-`, `_`, `~` and `.` is percent-encoded, so that
/// `/` and spaces arrive literally.
fn encode(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || b"-_~.".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_literal_path_segment() {
        assert_eq!(encode("event/1 ä"), "event%2F1%20%C3%A4");
        assert_eq!(encode("a/../b"), "a%2F..%2Fb");
        assert_eq!(in_query("..").as_deref(), Some("name=.."));
        assert_eq!(in_query("..."), None, "an ordinary segment");
    }
}
