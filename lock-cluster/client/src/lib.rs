//! A client of the lock cluster: hold a named lock, know its fencing token, hear when it is lost.
//!
//! ```no_run
//! # async fn example() -> Result<(), lock_client::LockError> {
//! use std::time::Duration;
//! use lock_client::{ClientConfig, LockClient};
//!
//! let client = LockClient::connect(ClientConfig::new(["http://127.0.0.1:8501"])).await?;
//! let grant = client.acquire(&["event/42".to_owned()], Duration::from_secs(30)).await?;
//! // … write, and let the storage check `grant.fencing_token()` …
//! grant.release().await?;
//! # Ok(()) }
//! ```
//!
//! # How it works
//!
//! * **One session a process.** A [`LockClient`] opens a session with its first acquire and an owned task keeps
//!   it alive every third of its TTL. All clones share it. When it is lost, the next acquire opens a new one.
//! * **Lost before anyone else is granted.** The deadline of a session runs from *before* the last successful
//!   keep-alive was sent, on the monotonic clock, and is half a thousandth of the TTL early, as clocks differ. The
//!   cluster counts from when that keep-alive was ordered, which is later: so the client says "lost" first.
//! * **Unknown is not failed.** A timeout, a reset connection, a node that does not lead, a cluster without a
//!   leader: none of them says that an acquire did not happen. The same `acquire_id` is asked again, of the
//!   leader that is known or of the next node, until the caller's deadline; the cluster remembers its answers.
//! * **Nothing stays behind.** An acquire that is cancelled, times out or cannot be decided is given up in the
//!   background with the same id until the cluster acknowledges it. A dropped [`Grant`] is released the same way.
//!   The cluster closes the id of a release it has never seen, so that a delayed acquire cannot be granted later.
//! * **One connection to the leader.** All calls of a client travel over one pipe ([`lock_pipe`]), each with an
//!   answer of its own; a node that does not speak it is asked in JSON over HTTP. A pipe that breaks is an answer that
//!   was not heard, no more: see "unknown" above.
//! * **The cluster may forget.** Every keep-alive carries the highest id up to which all attempts are finished,
//!   so that remembered answers do not pile up.
//!
//! # What it does not promise
//!
//! A lock alone is not mutual exclusion for the outside world. A process can be stopped between the check of
//! [`Grant::is_lost`] and its write; only storage that refuses an older [`Grant::fencing_token`] closes that gap.

mod asking;
mod backoff;
mod client;
mod cluster;
mod config;
mod error;
mod events;
mod grant;
mod ids;
mod keep_alive;
mod leaders;
mod pipe;
mod pipes;
mod rest;
mod session;
mod transport;
pub mod wire;

pub use client::LockClient;
pub use cluster::ClusterClient;
pub use config::{ClientConfig, Protocol};
pub use error::LockError;
pub use events::{EventFeed, EventsFrom, FeedEvent};
pub use grant::Grant;
pub use session::KeepAlivePause;
