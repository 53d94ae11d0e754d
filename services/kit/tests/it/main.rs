//! The kit over real sockets: a service of a few routes, and the clients that call it.

mod answers;
mod ending;
mod faults;
mod peer;
mod support;
