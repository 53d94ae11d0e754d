//! The seam between our code and whatever runs it.
//!
//! Everything from the batcher to the expiry loop is generic over one runtime `R`. On a real node that is
//! tokio; in the simulation it is `openraft-rt-sim`, where three or five nodes, their clients and their disks
//! share one thread and a virtual clock, and every run repeats bit for bit from its seed. The price is a short
//! list of things that code behind the seam may not do, because each of them asks the machine instead of `R`:
//! no `tokio::spawn`, `tokio::time` or `tokio::sync::watch`, no `Instant::now`, no `SystemTime`, no unbiased
//! `select!`, and no iteration over a `HashMap`. tokio's other channels, its semaphore and `Notify` are only
//! queues and wakers, and are welcome.
//!
//! In front of the seam, and free to use tokio directly: `http/`, `raft/peer/` (sockets), `node.rs`.

use std::time::Duration;

use openraft::AsyncRuntime;
use openraft::async_runtime::Instant as _;

/// A runtime that the lock service can run on.
///
/// openraft's own trait already offers tasks, sleeping, timeouts and a monotonic clock. What the name adds is
/// the promise to read time only from here, and one place for what a later runtime may have to bring along.
pub trait ServiceRt: AsyncRuntime + Send + Sync + 'static {
    /// The monotonic clock of the node this code runs on. Not wall time: it may start anywhere, may drift,
    /// and means nothing to another node.
    fn now() -> Self::Instant {
        Self::Instant::now()
    }

    /// How long ago `earlier` was on that clock.
    fn since(earlier: Self::Instant) -> Duration {
        Self::now().saturating_duration_since(earlier)
    }

    /// Lets every other task that is ready run first.
    fn let_others_run() -> impl Future<Output = ()> + Send {
        Self::sleep(Duration::ZERO)
    }
}

/// The runtime of real nodes.
pub type Tokio = openraft_rt_tokio::TokioRuntime;

impl ServiceRt for Tokio {
    /// Looks at the sockets, too; a sleep of no time would not even leave the task.
    fn let_others_run() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}
