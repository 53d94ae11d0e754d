//! The lock cluster on trial, for real: processes, sockets, disks and signals.
//!
//! The simulation (`lock-sim`) shows the protocol under thousands of elections a minute, and repeats bit for bit. What
//! it cannot show is what it replaces by models: processes that are killed with dirty buffers, sockets that stay open
//! to somebody who is frozen, real flushes, several threads, the client library itself. Here all of that is real, and
//! nothing repeats but the plan.
//!
//! | part | what it does |
//! |---|---|
//! | [`plan`] | draws from a seed what goes wrong, and when |
//! | [`cluster`] | `lock-node` processes: start, kill, freeze, arm their fault points |
//! | [`client`] | clients that die and freeze like processes, through the public `lock-client` |
//! | `nemesis` | carries the plan out |
//! | [`scribe`] | what clients saw and believed, in one order |
//! | [`account`] | what the nodes tell, compared with each other and read by one who knows only the rules |
//! | [`mod@run`] | all of it, and then: no faults, and everything has to become well |
//!
//! The checks are those of the simulation (`lock-history`): two holders at once, tokens, stale reads, sessions that end
//! before their time, an order that explains each lock. A check that never found anything has proved nothing, so three
//! bugs are planted in the tests ([`plan::Plant`]), and found.

pub mod account;
pub mod client;
pub mod cluster;
pub mod plan;
pub mod process;
pub mod run;
pub mod scribe;

mod nemesis;

pub use plan::Plan;
pub use run::{Report, run};
