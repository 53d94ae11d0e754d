//! The kit over real sockets: a service of a few routes, and the clients that call it.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a verdict")]

mod answers;
mod ending;
mod faults;
mod peer;
mod support;
