//! What a node does about the membership without being asked.
//!
//! On a leader it finishes a change that another left half-way; on a node that was removed and is taken in again, it
//! lets it campaign.
//!
//! A leader can die between the two entries of a membership change, and then the cluster needs the majorities of both
//! the old and the new members for everything, until somebody writes the second entry. The administrator who asked for
//! the change has got no answer and may not ask again, so the next leader does it.

use std::time::Duration;

use crate::raft::{Consensus, ServiceRt};

/// How often it looks. Rarely needed, and nothing is unsafe meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs until `stopped` says so.
pub(super) async fn run<R: ServiceRt>(consensus: Consensus<R>, stopped: impl Fn() -> bool + Send) {
    while !stopped() {
        consensus.finish_change().await;
        consensus.heed_removal();
        R::sleep(LOOK_EVERY).await;
    }
}
