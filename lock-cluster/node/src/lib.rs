//! A member of the lock cluster: as a library to embed in any tokio program, and as a program of its own.
//!
//! The pure rules live in `lock-core`. This crate gives them three legs:
//!
//! * [`raft`] makes every node apply the same commands in the same order, and keeps them on disk. The consensus
//!   library is used there and nowhere else.
//! * [`service`] is what turns requests into commands and commands into answers: the leader's batch, cluster
//!   time, expiry, waiters, the event feed. It is generic over the runtime, so that the very same code runs in
//!   a deterministic simulation.
//! * `http` parses and answers; it decides nothing.
//!
//! [`Node`] ties them together: `Node::start(config).await?`, and `node.shutdown().await` at the end.
//! [`HostedNode`] is the same for a program that hosts a member beside its own work. Three examples, each of them
//! run by a test: `lone_node`, `three_in_one_process` and `client`.
//!
//! # What it guarantees
//!
//! As long as a majority of the members keep what they have written to their disks:
//!
//! * **One holder.** A lock is granted only when the grant is on a majority's disks, and not to two at a time. Every grant
//!   has a higher fencing token than all before it in the whole cluster, also for names that were forgotten meanwhile.
//! * **The same question, the same answer.** An `acquire_id` asked again is answered as before: by another node, after
//!   an election, after a restart of all nodes, out of a snapshot.
//! * **First come, first served**, in the order of the log; several names are granted together or not at all, so that
//!   acquires never wait for each other in a circle.
//! * **A session lives for its time to live** after its last keep-alive was *sent*, through elections, and whatever
//!   anybody's wall clock does; it is gone a second and an election later at the latest.
//! * **Whoever leaves leaves nothing behind**: an acquire that is dropped, at once; a client that dies, with its session.
//! * **A look shows what is**: "who holds" is asked of a leader that a majority has confirmed after the question came in.
//!
//! # What it does not
//!
//! * **A lock alone is not mutual exclusion for the outside world: check the token.** A holder can be stopped for longer
//!   than its time to live, between its last look at the lock and its write; by then somebody else holds. Only storage
//!   that refuses a lower [fencing token](lock_core::FencingToken) than the highest it has seen closes that gap.
//! * Nothing is granted without a majority, and nobody's session expires then either.
//! * A member whose disk was lost must come back under a new id, or be removed first; otherwise it is turned away.
//! * Members are trusted: whoever proves to be one can do anything. Clients are not, and are bounded in everything.

pub mod cli;
pub mod config;
mod embed;
pub mod faults;
mod hosted;
mod http;
pub mod node;
pub mod raft;
pub mod service;

#[cfg(test)]
mod cluster_tests;
// For test support that is shared with the tests outside of this crate.
#[cfg(test)]
extern crate self as lock_node;

pub use config::{ConfigError, Member, NodeConfig, PeerTlsFiles, Secret};
pub use faults::NodeFaults;
pub use hosted::HostedNode;
pub use node::Node;
pub use raft::{ServiceRt, Tokio};
pub use service::{LockService, ServiceError};
