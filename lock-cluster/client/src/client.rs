//! The client itself: one session at a time, and acquires through it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_core::limits::WAIT_MS_MAX;
use lock_core::{AcquireId, FencingToken, Label, LockNames, SessionId, TtlMs, WaitMs};
use lock_pipe::{Call, Done};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::asking::Answer;
use crate::config::ClientConfig;
use crate::error::LockError;
use crate::grant::{Claim, Grant};
use crate::keep_alive;
use crate::session::{KeepAlivePause, Session};
use crate::transport::{Transport, Try};

/// The longest wait that the cluster takes.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long past its wait an acquire goes on asking for an answer: two elections of a busy cluster.
const PATIENCE: Duration = Duration::from_secs(4);
/// How much longer than the wait one answer may take on its way.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);
/// How long one try to open a session may take.
const OPEN_TRY: Duration = Duration::from_millis(1_500);
/// How long [`LockClient::close`] waits for releases that are under way.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// A client of the lock cluster; clones share one session.
///
/// When the last clone and the last [`Grant`] are gone, the session is closed in the background.
#[derive(Clone, Debug)]
pub struct LockClient {
    inner: Arc<Inner>,
}

/// What clones, grants and their clean-up share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) transport: Arc<Transport>,
    ttl: TtlMs,
    label: Label,
    current: Mutex<Option<Arc<Session>>>,
    /// Held while a session is being opened, so that a thousand first acquires open one.
    opening: tokio::sync::Mutex<()>,
    closing: CancellationToken,
    tasks: TaskTracker,
    /// A grant may be dropped where no runtime is entered; its release still needs one.
    runtime: Handle,
}

impl LockClient {
    /// A client of the cluster at `config.urls`. Nothing is sent yet: the session opens with the first acquire,
    /// so that a process can start before its lock cluster does.
    ///
    /// # Errors
    /// [`LockError::Invalid`] if there is no URL or one that cannot be read, or if the TTL or the label is outside of
    /// its bounds.
    pub async fn connect(config: ClientConfig) -> Result<Self, LockError> {
        let ttl_ms = u64::try_from(config.ttl.as_millis()).unwrap_or(u64::MAX);
        let inner = Inner {
            transport: Arc::new(Transport::new(&config)?),
            ttl: TtlMs::new(ttl_ms).map_err(refused)?,
            label: Label::parse(&config.label).map_err(refused)?,
            current: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Holds all of `names` or none, waiting at most `wait` for them (none at all if it is zero).
    ///
    /// The answer can take a few seconds more than the wait while the cluster has no leader. A dropped future
    /// gives its place back in the background.
    ///
    /// # Errors
    /// [`LockError::Held`] or [`LockError::WaitTimeout`] if somebody else holds; [`LockError::Unavailable`] if the
    /// cluster could not be asked; [`LockError::Invalid`] if it refuses the names or the wait.
    #[tracing::instrument(level = "debug", skip_all, fields(lock.name = ?names, fencing_token))]
    pub async fn acquire(&self, names: &[String], wait: Duration) -> Result<Grant, LockError> {
        if wait > WAIT_MAX {
            let detail = format!("a wait is at most {WAIT_MAX:?}, not {wait:?}");
            return Err(LockError::invalid("invalid-request", detail));
        }
        let names = LockNames::parse(names).map_err(refused)?;
        let begun = Instant::now();
        let deadline = begun + wait + PATIENCE;
        loop {
            let mut claim = self.inner.claim(deadline).await?;
            let remaining = || wait.saturating_sub(begun.elapsed());
            match self
                .inner
                .acquire(&mut claim, &names, remaining, deadline)
                .await?
            {
                Acquired::Granted { fencing_token, names } if !claim.session.is_lost() => {
                    tracing::Span::current().record("fencing_token", fencing_token.get());
                    let names = names.iter().map(ToString::to_string).collect();
                    return Ok(Grant::new(claim, fencing_token.get(), names));
                }
                // The attempt is over in the cluster without our doing: its session ended, or a node took a
                // reset connection for a client that had gone. Whatever there was is gone: a new attempt, at
                // the end of the queue, for what is left of the wait.
                Acquired::Granted { .. } | Acquired::Over => {}
                Acquired::NotInTime if wait.is_zero() => return Err(LockError::Held),
                Acquired::NotInTime => return Err(LockError::WaitTimeout),
            }
        }
    }

    /// The session that acquires use now, if one is open.
    pub fn session_id(&self) -> Option<Uuid> {
        self.inner
            .current()
            .filter(|session| !session.is_lost())
            .map(|session| session.id.get())
    }

    /// Stops keeping the session alive for as long as the returned value lives; `None` if no session is open.
    pub fn pause_keep_alive(&self) -> Option<KeepAlivePause> {
        self.inner.current().map(|session| session.pause())
    }

    /// Closes the session, which frees everything it holds, and waits (for a bounded time) until that is done.
    /// Later acquires are [`LockError::Unavailable`].
    pub async fn close(&self) {
        self.inner.closing.cancel();
        self.inner.tasks.close();
        if timeout(CLOSE_WITHIN, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("lock releases were left to the end of their session");
        }
    }
}

/// What an acquire was answered.
enum Acquired {
    Granted {
        fencing_token: FencingToken,
        names: LockNames,
    },
    NotInTime,
    Over,
}

impl Inner {
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn_on(work, &self.runtime)
    }

    fn current(&self) -> Option<Arc<Session>> {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A number in a session that lives, opening one if need be.
    async fn claim(self: &Arc<Self>, deadline: Instant) -> Result<Claim, LockError> {
        loop {
            if self.closing.is_cancelled() {
                return Err(LockError::unavailable("the lock client is closed"));
            }
            if let Some(claim) = self.try_claim() {
                return Ok(claim);
            }
            let late = |_| LockError::unavailable("no session could be opened in time");
            let opening = timeout_at(deadline, self.opening.lock()).await.map_err(late)?;
            if let Some(claim) = self.try_claim() {
                return Ok(claim);
            }
            // Opened by a task of its own: if this future is dropped, the session still finds its keeper.
            let opened = self.spawn(open_session(self.clone(), deadline)).await;
            opened.unwrap_or_else(|stopped| Err(LockError::unavailable(stopped.to_string())))?;
            drop(opening);
        }
    }

    fn try_claim(self: &Arc<Self>) -> Option<Claim> {
        let session = self.current()?;
        let acquire_id = session.begin()?;
        Some(Claim::new(self.clone(), session, acquire_id))
    }

    /// Asks with one number until there is an answer, or none by the deadline.
    async fn acquire(
        &self,
        claim: &mut Claim,
        names: &LockNames,
        remaining: impl Fn() -> Duration,
        deadline: Instant,
    ) -> Result<Acquired, LockError> {
        let session = claim.session.clone();
        let acquire_id = AcquireId::new(claim.acquire_id);
        let make = || {
            let wait = remaining();
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let call = Call::Acquire {
                session_id: session.id,
                acquire_id,
                names: names.clone(),
                wait: WaitMs::new(wait_ms.min(WAIT_MS_MAX)).unwrap_or(WaitMs::ZERO),
            };
            let timeout = wait + ANSWER_WITHIN;
            Try { call, timeout }
        };
        claim.sent = true;
        let answer = tokio::select! {
            answer = self.transport.call(deadline, make) => answer?,
            // Hears of it by its own clock, also while no node answers.
            () = session.lost() => return Ok(Acquired::Over),
        };
        self.understand(claim, answer)
    }

    fn understand(&self, claim: &mut Claim, answer: Answer<Done>) -> Result<Acquired, LockError> {
        let problem = match answer.said {
            Ok(Done::Granted { fencing_token, names }) => {
                return Ok(Acquired::Granted { fencing_token, names });
            }
            Ok(other) => {
                return Err(LockError::unavailable(format!(
                    "an acquire was answered with {other:?}"
                )));
            }
            Err(problem) => problem,
        };
        match (problem.status, problem.slug.as_str()) {
            (410, _) => {
                claim.session.lose();
                Ok(Acquired::Over)
            }
            // Remembered under this number: it will not be granted any more.
            (_, "lock-held" | "lock-wait-timeout") => {
                claim.settle();
                Ok(Acquired::NotInTime)
            }
            // Over, but not settled: what an administrator broke is remembered until it is released.
            (_, "already-released") => Ok(Acquired::Over),
            _ => {
                // A refusal is about this try alone. An earlier one may hold by now, or may yet: give it back then.
                if !answer.in_doubt {
                    claim.settle();
                }
                Err(problem.into())
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The keep-alive task owns no `Inner`: it hears of the end here, and closes the session.
        self.closing.cancel();
    }
}

/// Opens a session, makes it the current one and gives it its keeper.
async fn open_session(inner: Arc<Inner>, deadline: Instant) -> Result<(), LockError> {
    let id = SessionId::new(Uuid::now_v7());
    // A repeat of an open keeps the session alive: so the deadline counts from the try that was answered.
    let mut sent = Instant::now();
    let make = || {
        sent = Instant::now();
        let call = Call::Open {
            session_id: id,
            ttl: inner.ttl,
            label: inner.label.clone(),
        };
        let timeout = OPEN_TRY;
        Try { call, timeout }
    };
    let ttl = match inner.transport.call(deadline, make).await?.said? {
        Done::Opened { ttl, .. } => Duration::from_millis(ttl.get()),
        other => {
            return Err(LockError::unavailable(format!(
                "an open was answered with {other:?}"
            )));
        }
    };
    let session = Arc::new(Session::new(id, ttl, sent));
    inner.spawn(keep_alive::run(
        session.clone(),
        inner.transport.clone(),
        inner.closing.clone(),
    ));
    let before = inner
        .current
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .replace(session);
    if let Some(before) = before {
        before.retire();
    }
    Ok(())
}

/// Outside of the bounds that the cluster sets.
fn refused(error: impl std::fmt::Display) -> LockError {
    LockError::invalid("invalid-request", error.to_string())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use crate::config::Protocol;

    /// A node that gives these answers, one a connection, and tells what it was asked. An empty one is no answer.
    async fn scripted(answers: &'static [(&'static str, &'static str)]) -> (String, mpsc::Receiver<String>) {
        let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", node.local_addr().unwrap());
        let (asked, heard) = mpsc::channel(64);
        tokio::spawn(async move {
            let mut left: Vec<_> = answers.iter().collect();
            loop {
                let (mut stream, _) = node.accept().await.unwrap();
                let mut request = vec![0; 4_096];
                let read = stream.read(&mut request).await.unwrap();
                let line = String::from_utf8_lossy(&request[..read]);
                let method = line.split(' ').next().unwrap_or_default().to_owned();
                let next = left.iter().position(|(to, _)| *to == method);
                let answer = next.map_or("", |at| left.remove(at).1);
                let _ = asked.send(method).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
                while stream.read(&mut request).await.is_ok_and(|more| more > 0) {}
            }
        });
        (url, heard)
    }

    #[tokio::test]
    async fn an_attempt_that_may_hold_is_given_back_when_its_repeat_is_refused() {
        const FULL: &str = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let (url, mut heard) = scripted(&[
            (
                "PUT",
                "HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 17\r\n\r\n{\"ttl_ms\": 60000}",
            ),
            // The first try may have been granted: its answer is lost.
            ("POST", ""),
            ("POST", FULL),
            // Nor can the give-back be noted at once.
            ("DELETE", FULL),
            ("DELETE", "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"),
        ])
        .await;
        let config = ClientConfig {
            ttl: Duration::from_secs(60),
            protocol: Protocol::Http,
            ..ClientConfig::new([url])
        };
        let client = LockClient::connect(config).await.unwrap();
        let refused = client.acquire(&["gate".to_owned()], Duration::ZERO).await;
        assert!(
            matches!(refused, Err(LockError::Unavailable { .. })),
            "{refused:?}"
        );
        let session = client.inner.current().unwrap();
        let mut asked = Vec::new();
        while asked.iter().filter(|method| *method == "DELETE").count() < 2 {
            let next = timeout(Duration::from_secs(10), heard.recv()).await;
            asked.push(next.expect("it is given back until that is taken").unwrap());
        }
        assert_eq!(asked, ["PUT", "POST", "POST", "DELETE", "DELETE"]);
        let settled = async {
            while session.to_acknowledge() != Some(1) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(10), settled)
            .await
            .expect("and then it is finished");
    }
}
