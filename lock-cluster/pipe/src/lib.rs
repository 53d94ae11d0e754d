//! The pipe: many calls of a client at once over one connection to a node, in binary.
//!
//! JSON over HTTP/1.1 costs a connection for every call that waits, and both ends more work for the wrapping than for
//! the lock. The pipe carries the five calls of a session, and nothing else; everything besides (looking, breaking,
//! members, events) stays JSON over HTTP, as do the same five calls for whoever prefers `curl`.
//!
//! # On the wire
//!
//! A pipe begins as a request to a node's client port:
//!
//! ```text
//! GET /v1/pipe HTTP/1.1
//! Connection: upgrade
//! Upgrade: lock-pipe/1
//! ```
//!
//! A node that speaks it answers 101 and the connection is the pipe's from then on; any other answer means "use HTTP".
//! Both ways then carry *frames*: a length in four bytes, little end first, and so many bytes, which are one
//! [`Request`] on the way there and one [`Response`] on the way back, in [postcard]'s encoding (below). Calls are
//! answered as they are decided, in any order; the `id` says which answer belongs to which call. An empty frame asks
//! for an empty frame: it is how a client sees that the node lives. A node hangs up on a client that it has not heard
//! for [`SILENCE_MAX`]; as it looks that often, it may take twice as long to notice.
//!
//! [postcard]: https://postcard.jamesmunns.com/wire-format
//!
//! | type | encoding |
//! |---|---|
//! | unsigned number | LEB128: seven bits a byte, lowest first, the top bit set in all but the last |
//! | text, list, 16 bytes of a UUID | their length as such a number, then the bytes or elements |
//! | optional | `0`, or `1` and the value |
//! | choice | the place of the variant in its list below, from 0, as such a number, then its fields in order |
//! | struct | its fields in order, nothing between them |
//!
//! # The rules
//!
//! * An `id` is the client's, and stands for one call at a time.
//! * What is no frame, is longer than [`REQUEST_BYTES_MAX`], is no request, or uses an id that is still in use, ends
//!   the connection: the two ends do not speak the same language, and no answer could be trusted to arrive.
//! * A connection that ends is a client that went away: acquires that have no answer yet are given up, as when a client
//!   of the HTTP API hangs up. So is one that is [cancelled](Request::Cancel).
//! * Whoever does not hear an answer does not know it: a call is repeated with the same session and acquire id, over
//!   any path, and gets the same answer.
//!
//! A later version of the words gets a later number in `Upgrade`; a node refuses one it does not know, and the client
//! uses HTTP.

pub mod frame;
mod patience;
mod words;

use std::time::Duration;

pub use patience::{WRITE_DEADLINE, WriteDeadline};
pub use words::{Answer, Call, Done, Leader, Problem, Request, Response};

/// Where a pipe begins.
pub const PATH: &str = "/v1/pipe";
/// What the connection is upgraded to.
pub const PROTOCOL: &str = "lock-pipe/1";
/// The largest request: sixteen names of 256 bytes fill half of it.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a client may say nothing.
pub const SILENCE_MAX: Duration = Duration::from_secs(75);
/// The largest answer: a thousand broken acquisitions fit several times.
pub const RESPONSE_BYTES_MAX: usize = 64 << 10;
