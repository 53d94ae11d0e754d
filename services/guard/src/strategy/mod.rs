//! The strategies, one file each, and what they have in common: [`Guard`].

pub(crate) mod atomic;
pub(crate) mod cluster;
pub(crate) mod none;
pub(crate) mod optimistic;
pub(crate) mod process;
pub(crate) mod raft;
pub(crate) mod raft_unfenced;

use std::pin::Pin;
use std::time::Duration;

use crate::entry::Held;
use crate::{GuardError, WriteRule};

/// What [`Guard::enter`] returns. Boxed, because the strategies live side by side in one map.
pub(crate) type Entering<'a> =
    Pin<Box<dyn Future<Output = Result<(WriteRule, Held), GuardError>> + Send + 'a>>;

/// One way to keep two sections apart.
pub(crate) trait Guard: Send + Sync {
    /// Waits at most `wait` until the section behind all of `names` is free, and says how to write in it.
    /// Dropped before it completes, it leaves nothing behind.
    fn enter<'a>(&'a self, names: &'a [String], wait: Duration) -> Entering<'a>;
}

/// For strategies that nobody has to wait for.
pub(crate) fn at_once<'a>(rule: WriteRule) -> Entering<'a> {
    Box::pin(std::future::ready(Ok((rule, Held::Nothing))))
}
