//! What the tests share.
//!
//! | file | one idea |
//! |---|---|
//! | [`all_in_one`] | the suite inside the test's process: quick to start, easy to ask |
//! | [`program`] | the program `last-ticket`, which can be killed as a whole |
//! | [`programs`] | every service as a program of its own, which can be killed one by one |
//! | [`door`] | the front door asked by hand, and the books behind it |
//! | [`crowd`] | people who buy at the same time |

pub(crate) mod all_in_one;
pub(crate) mod crowd;
pub(crate) mod door;
pub(crate) mod program;
pub(crate) mod programs;

pub(crate) use all_in_one::AllInOne;
pub(crate) use crowd::{Crowd, Manner, order};
pub(crate) use door::{Door, Reply};

use last_ticket::Ports;

/// Ports for a whole suite that nobody else in this run of the tests gets.
pub(crate) fn free_ports() -> Ports {
    Ports::deal(testkit::free_ports(Ports::COUNT))
}
