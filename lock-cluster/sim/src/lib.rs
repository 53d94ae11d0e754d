//! The lock cluster on trial: the real consensus, the real service and model machines, in a world that repeats.
//!
//! Three or five members, their disks, the network and the clients share one thread and a virtual clock. Everything
//! that is left to chance on real machines (who is scheduled, how long a message takes, what a crash leaves on the
//! disk) is drawn from one seed, so a run that went wrong once goes wrong again, as often as one likes to look at it.
//!
//! | real, as shipped | a model |
//! |---|---|
//! | the consensus library, its log store adapter, its settings | the disk ([`disk`]), the network ([`network`]) |
//! | the state machine, snapshots, batcher, clock, expiry, waiters, read index | machines: crash, pause, drift ([`runtime`]) |
//! | | clients ([`client`]): the real one speaks HTTP over sockets |
//!
//! So it cannot show what sockets, TCP framing, a real fsync or several threads do: real processes are killed
//! elsewhere. What it shows is the protocol, thousands of elections and crashes a minute of it.
//!
//! A run ([`run`]) has two halves. In the first, faults; whatever must *never* happen is checked over all of it. In
//! the second everything is mended, and what must *eventually* happen has to, in bounded time. The checks are in
//! [`lock_history`] (what clients saw, what the cluster says it did) and in [`cluster`] (all replicas are the same), and
//! tests plant bugs ([`Plant`]) to see them found.

pub mod client;
pub mod cluster;
pub mod disk;
pub mod network;
pub mod runtime;
pub mod stories;

mod admin;
mod nemesis;
mod plan;
mod run;
mod trace;
mod world;

pub use plan::{Plan, Plant};
pub use run::{Report, run};
pub use world::Counts;
