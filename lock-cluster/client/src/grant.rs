//! What an attempt leaves in the cluster, and the promise that it is cleared away.
//!
//! A [`Claim`] exists from before the first request of an acquire is sent. Whatever happens to the future that
//! owns it (an answer, an error, a drop at any await), the claim is either *settled*, because the cluster has said
//! that nothing is left, or given back by a task that asks until the cluster says so or the session is over.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use lock_core::AcquireId;
use lock_pipe::Call;

use crate::backoff::Backoff;
use crate::client::Inner;
use crate::error::LockError;
use crate::session::{KeepAlivePause, Session};
use crate::transport::Try;

/// How long one try of a release may take. Short: it is asked again, and the next in the queue is waiting.
const RELEASE_TRY: std::time::Duration = std::time::Duration::from_millis(1_500);

/// One attempt of a session: its number, and the duty to leave nothing of it behind.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) client: Arc<Inner>,
    pub(crate) session: Arc<Session>,
    pub(crate) acquire_id: u64,
    /// Whether the cluster may know of the attempt.
    pub(crate) sent: bool,
    settled: bool,
}

impl Claim {
    pub(crate) fn new(client: Arc<Inner>, session: Arc<Session>, acquire_id: u64) -> Self {
        Self {
            client,
            session,
            acquire_id,
            sent: false,
            settled: false,
        }
    }

    /// The cluster has said that nothing is left of this attempt.
    pub(crate) fn settle(&mut self) {
        if !self.settled {
            self.settled = true;
            self.session.finish(self.acquire_id);
        }
    }

    /// Gives it back; dropping the returned future does not stop that.
    fn give_back(&mut self) -> impl Future<Output = Result<(), LockError>> + use<> {
        self.settled = true;
        let task = self.client.spawn(give_back(
            self.client.clone(),
            self.session.clone(),
            self.acquire_id,
        ));
        async move {
            task.await.unwrap_or_else(|stopped| {
                Err(LockError::unavailable(format!("the release stopped: {stopped}")))
            })
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.settled && self.sent {
            drop(self.give_back());
        } else {
            self.settle();
        }
    }
}

/// Asks for the release until the cluster has taken it, or until the session, and all it held, is over.
async fn give_back(client: Arc<Inner>, session: Arc<Session>, acquire_id: u64) -> Result<(), LockError> {
    let mut backoff = Backoff::new();
    let make = || Try {
        call: Call::Release {
            session_id: session.id,
            acquire_id: AcquireId::new(acquire_id),
        },
        timeout: RELEASE_TRY,
    };
    let said = loop {
        // The session's deadline moves on while this asks; each round asks until the one that is known.
        let answer = tokio::select! {
            answer = client.transport.call(session.deadline(), make) => answer,
            () = session.lost() => return Err(LockError::SessionLost),
        };
        match answer.map(|answer| answer.said) {
            // No room to note that an id it has not seen is used up. Until it is, a delayed acquire could be granted.
            Ok(Err(problem)) if problem.status == 429 => tokio::time::sleep(backoff.pause()).await,
            Ok(said) => break said,
            Err(_) if session.is_lost() => return Err(LockError::SessionLost),
            Err(_) => {}
        }
    };
    match said {
        Ok(_) => {
            session.finish(acquire_id);
            Ok(())
        }
        // It was never granted. The id is closed all the same.
        Err(problem) if problem.status == 404 => {
            session.finish(acquire_id);
            Ok(())
        }
        Err(problem) => {
            if problem.status == 410 {
                session.lose();
            }
            Err(problem.into())
        }
    }
}

/// Locks that are held: all of the names that were asked for, under one fencing token.
///
/// Dropping it releases them in the background; [`Grant::release`] also waits until the cluster has done so.
pub struct Grant {
    claim: Claim,
    fencing_token: u64,
    names: Vec<String>,
}

impl Grant {
    pub(crate) fn new(claim: Claim, fencing_token: u64, names: Vec<String>) -> Self {
        Self {
            claim,
            fencing_token,
            names,
        }
    }

    /// Higher than the token of every grant before this one. Storage that remembers the highest it has seen, and
    /// refuses lower ones, is safe from a holder that was stopped for too long.
    pub fn fencing_token(&self) -> u64 {
        self.fencing_token
    }

    /// What is held.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of this attempt within its session.
    pub fn acquire_id(&self) -> u64 {
        self.claim.acquire_id
    }

    /// The session that holds.
    pub fn session_id(&self) -> uuid::Uuid {
        self.claim.session.id.get()
    }

    /// Completes when the grant is lost. A session that ends is heard of before anybody else can be granted the
    /// lock; an administrator's break only with the next keep-alive, a third of the TTL later at most.
    pub async fn lost(&self) {
        tokio::select! {
            () = self.claim.session.lost() => {}
            () = self.claim.session.broken(self.claim.acquire_id) => {}
        }
    }

    /// Whether the grant is lost, by the clock of this moment and the last keep-alive.
    pub fn is_lost(&self) -> bool {
        self.claim.session.is_lost() || self.is_broken()
    }

    /// Until when it stands even if no keep-alive gets through any more. Each one that does moves it on.
    pub fn deadline(&self) -> std::time::Instant {
        self.claim.session.deadline().into_std()
    }

    /// Whether it is lost because an administrator broke it; the session, and its other grants, live on.
    pub fn is_broken(&self) -> bool {
        self.claim.session.is_broken(self.claim.acquire_id)
    }

    /// Stops keeping this grant's session alive for as long as the returned value lives.
    pub fn pause_keep_alive(&self) -> KeepAlivePause {
        self.claim.session.pause()
    }

    /// Releases, and returns when the cluster has done so. Dropping the future does not stop the release.
    ///
    /// # Errors
    /// [`LockError::SessionLost`] if the session was over first: somebody else may have held the lock since.
    pub async fn release(mut self) -> Result<(), LockError> {
        self.claim.give_back().await
    }
}

// Written by hand: the client and its connections inside are of no use to a reader.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("names", &self.names)
            .field("fencing_token", &self.fencing_token)
            .field("session_id", &self.session_id())
            .field("acquire_id", &self.acquire_id())
            .finish_non_exhaustive()
    }
}
