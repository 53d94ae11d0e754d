//! [`Entry`]: the permission to be inside a critical section.

use std::time::{Duration, Instant};

use lock_client::{Grant, KeepAlivePause};
use tokio::time::timeout;

use crate::WriteRule;
use crate::strategy::process::KeysHeld;

/// How long [`Entry::leave`] waits for the release. What is not done by then goes on in the background.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// What is held while the section runs; letting go of it lets the next one in.
#[derive(Debug)]
pub(crate) enum Held {
    /// Nothing: anybody may be inside at the same time.
    Nothing,
    /// Mutexes of this instance. Never read: they are given back by being dropped.
    Keys { _keys: KeysHeld },
    /// Locks of the cluster.
    Grant(Grant),
}

/// The permission to be inside the section, until it is dropped or left.
#[derive(Debug)]
#[must_use = "the section is left as soon as this is dropped"]
pub struct Entry {
    /// By which rule the section has to write.
    pub rule: WriteRule,
    /// How long it took to get in.
    pub waited: Duration,
    entered: Instant,
    held: Held,
}

impl Entry {
    pub(crate) fn new(rule: WriteRule, waited: Duration, held: Held) -> Self {
        Self {
            rule,
            waited,
            entered: Instant::now(),
            held,
        }
    }

    /// For how long the section has been running.
    pub fn inside(&self) -> Duration {
        self.entered.elapsed()
    }

    /// Leaves, and waits (for a bounded time) until the next one may enter. A request that only wants to get on
    /// with its answer drops the entry instead: the release then happens in the background.
    pub async fn leave(self) {
        let Held::Grant(grant) = self.held else { return };
        match timeout(LEAVE_WITHIN, grant.release()).await {
            Ok(Ok(())) => {}
            // The section is over either way. Whether it held the lock all the time is for the fence to judge.
            Ok(Err(error)) => tracing::debug!(%error, "a lock was lost before it was released"),
            Err(_) => tracing::debug!("a lock's release goes on in the background"),
        }
    }

    /// Lets the holder's session die: while the result lives, its keep-alive is not sent. This is what a process
    /// that was stopped (SIGSTOP, a long collection, a frozen machine) looks like to the cluster.
    /// Strategies without a session have nothing to pause.
    pub fn pause_keep_alive(&self) -> KeepAlivePaused {
        KeepAlivePaused {
            _pause: match &self.held {
                Held::Grant(grant) => Some(grant.pause_keep_alive()),
                Held::Nothing | Held::Keys { .. } => None,
            },
        }
    }
}

/// While this lives, the session of an [`Entry`] is not kept alive.
#[derive(Debug)]
#[must_use = "the keep-alive goes on as soon as this is dropped"]
pub struct KeepAlivePaused {
    _pause: Option<KeepAlivePause>,
}
