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
//! [`HostedNode`] is the same for a program that hosts a member beside its own work.

pub mod cli;
pub mod config;
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
