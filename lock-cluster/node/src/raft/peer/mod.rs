//! How members talk to each other.
//!
//! One TCP connection carries length-delimited frames one way and their answers the other, in order. What travels:
//!
//! * **append** connections: `AppendEntries`, pipelined. The leader keeps one to each follower for entries and one
//!   for heartbeats, so that a heartbeat never queues behind a megabyte of log. Up to 64 requests are on their way
//!   before the first answer is back; the library's default would send one at a time and pay a round trip for each.
//! * **call** connections: one vote, pre-vote, leader transfer or question who belongs (`belonging`), then closed.
//!   Elections are rare.
//! * **snapshot** connections: a header, the state in chunks, one answer.
//!
//! Every connection starts with a handshake in which both ends prove that they know the cluster's secret
//! (`handshake`). Where TLS is configured (`tls`), that happens inside of it, and both ends have shown certificates
//! before. Without, the stream is trusted after the handshake but not encrypted: it belongs on a network of its own.
//!
//! A peer may be slow, dead, stopped, or malicious before it is authenticated, so there is a limit on everything:
//! frames have a maximal size, which is checked before anything is allocated; connecting, the handshake, each
//! write, each answer and each silence have a deadline; unauthenticated connections are short-lived, and make
//! room for newer ones when there are many.
//!
//! There is no task per connection on the sending side. The stream of answers that the library polls *is* the
//! sender: polling it writes requests and reads answers alternately. When the library drops it, nothing is left
//! behind that would have to be aborted.

mod absence;
mod belonging;
mod client;
mod complaints;
mod frame;
mod handshake;
mod hmac;
pub mod pace;
mod pump;
mod refusal;
mod server;
#[cfg(test)]
mod slow_line_tests;
mod standing;
mod tls;
#[cfg(test)]
mod tls_tests;
mod transport;
mod wire;

use std::time::Duration;

pub(crate) use belonging::Belonging;
pub(crate) use client::PeerNetwork;
pub(crate) use handshake::{Key, Me};
pub(crate) use server::serve;
pub(crate) use standing::Standing;
pub(crate) use tls::PeerTls;
pub(crate) use transport::Transport;

/// A silent append connection shows in between that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// After so much silence the receiving end gives a connection up. More than two signs of life.
const IDLE_DEADLINE: Duration = Duration::from_secs(25);
