//! Passing requests on: to one of a service's instances, or to the node that leads the lock cluster.
//!
//! | file | one idea |
//! |---|---|
//! | [`parcel`] | a request that can be sent more than once, and what of it may travel |
//! | [`instance`] | one instance as a tower service that knows its load and its health |
//! | [`pool`] | which instance, and when another one |
//! | [`leader`] | the lock cluster: follow 421 |
//!
//! Two decisions are behind all of it. *What was never sent may always go elsewhere*: a refused connection
//! carried nothing, so the next instance gets the request and the buyer sees no error. *What was sent and not
//! answered is unknown*: it goes elsewhere only if its copy would be recognised (see
//! [`repeatable`](crate::domain::route::repeatable)), and otherwise the answer says that nobody knows.

pub(crate) mod instance;
pub(crate) mod leader;
pub(crate) mod parcel;
pub(crate) mod pool;

use std::time::Duration;

use service_kit::Problem;

/// When to come back. The prober and an election both need about a second.
const LATER: Duration = Duration::from_secs(1);

/// No instance takes a connection: nothing was done.
fn nobody_there(service: &str, reason: &str) -> Problem {
    Problem::busy(format!("{service}-unavailable"), LATER).detail(format!(
        "no instance of {service} can be reached, so nothing was done ({reason})"
    ))
}

/// Sent, and not answered.
fn unknown_outcome(service: &str, reason: &str) -> Problem {
    Problem::busy("outcome-unknown", LATER).detail(format!(
        "{service} got the request and did not answer: it may have been carried out; ask again with the same ids ({reason})"
    ))
}
