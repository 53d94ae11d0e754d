//! Everything that knows the consensus library. Nothing outside of this module does.
//!
//! | what the library asks for | where | what we add |
//! |---|---|---|
//! | a log and a vote that are durable | [`log`] | one writer, an fsync for whatever is queued; callbacks in order; requests bounded by size; the device behind a small trait |
//! | a state machine | `state_machine` | batches decoded once, replies to each command, the leader's clock started by its term's first entry |
//! | snapshots | [`snapshot`] | one file, checksummed, replaced atomically and only by a newer one |
//! | a network | `peer` | one pipelined connection a peer, authenticated both ways, a deadline on everything; pre-vote, which the library's default would grant to anybody |
//! | who belongs | `membership`, `removal`, `identity` | one change at a time, none that would stop the cluster, and each finished by the next leader if need be; a member is its disk, and of one cluster |
//! | settings | `settings` | times for loaded machines; leader restore off (unsafe with an asynchronous log) |
//! | an async runtime | `runtime` | the seam: the same code on tokio and in a deterministic simulation |
//! | somebody to ask it | `consensus` | errors that say what a caller can do: asked elsewhere, unknown, stopping |
//!
//! What the library does for us: elections, replication, membership changes, the commit rule, read index, and the
//! decision when to send a snapshot instead of the log.

mod commit_hold;
mod consensus;
pub(crate) mod envelope;
#[cfg(test)]
mod flush_tests;
mod identity;
mod ids;
#[cfg(test)]
mod joining_tests;
pub mod log;
mod membership;
pub(crate) mod peer;
mod removal;
mod reporting;
mod runtime;
mod settings;
pub mod snapshot;
mod state_machine;
pub mod types;

pub use commit_hold::{COMMIT_HELD, CommitHold};
pub(crate) use consensus::nodes;
pub use consensus::{Consensus, Pending};
pub(crate) use identity::Identity;
pub use ids::{ClusterId, DiskId};
pub use openraft_rt::Select2;
pub use peer::pace;
pub use runtime::{ServiceRt, Tokio};
pub(crate) use settings::SNAPSHOT_EVERY;
pub use state_machine::StateMachine;
pub use types::{Batch, BatchContent, Cfg, PeerNode};
