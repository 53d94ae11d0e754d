//! Whether this node belongs to a cluster, and with whom: what it asks its peers about outside of Raft.
//!
//! * **Nobody founds a second cluster.** The member that may found one (the lowest id, with `--bootstrap` and an empty
//!   disk) asks all others first. One that has a log says that there is a cluster already; then this disk is a new one
//!   and waits to be taken in. Otherwise it founds, when all have shown their empty disks, which the first entry of the
//!   log records; or when a majority has and the rest cannot be reached, whose disks the leader records once it sees
//!   them. One that was told of nobody else listens for a moment whether a leader calls on it.
//! * **Who was removed learns of it.** A leader stops sending to a member in the moment it writes the removal, so that
//!   the member may never see that entry. A node that has heard no leader for a while asks whoever it knows.
//! * **Who has lost its disk learns of it**, the same way: it is turned away at the handshake.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::super::consensus::Consensus;
use super::super::disk_id::DiskId;
use super::super::runtime::Tokio;
use super::client::PeerNetwork;
use super::standing::Standing;

/// How often a founder asks who is there.
const FOUND_EVERY: Duration = Duration::from_millis(100);
/// How long a founder with a majority waits for the rest.
const FOUND_GRACE: Duration = Duration::from_secs(3);
/// How long a founder that was told of nobody else listens whether a leader calls, which it would ten times a second: the
/// cluster of one that it was told to found may have grown since, and its disk been lost.
const LISTEN: Duration = Duration::from_millis(500);
/// How often anybody else looks whether there is something to ask.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After so long without a leader it asks the others. Longer than an election.
const SILENCE: Duration = Duration::from_secs(3);

/// The task's state.
pub(crate) struct Belonging {
    pub(crate) network: PeerNetwork,
    pub(crate) consensus: Consensus<Tokio>,
    pub(crate) standing: Arc<Standing>,
    /// Whether this node was told to found the cluster if there is none.
    pub(crate) bootstrap: bool,
}

impl Belonging {
    /// Runs until `closing` falls.
    pub(crate) async fn run(self, closing: CancellationToken) {
        tokio::select! {
            () = closing.cancelled() => {}
            () = self.work() => {}
        }
    }

    async fn work(self) {
        if self.bootstrap && matches!(self.consensus.may_found().await, Ok(true)) {
            self.found().await;
        }
        // At once, the first time: a member that comes back on another disk should hear of it before anything else.
        let mut asked = false;
        loop {
            self.standing.record(self.consensus.recorded_disks());
            if self.consensus.leading().is_ok() {
                let mut seen = self.standing.seen();
                seen.insert(self.network.badge().id, self.network.badge().disk);
                self.consensus.record_disks(&seen).await;
            } else if !asked || self.standing.silence() > SILENCE {
                asked = true;
                self.ask_everybody().await;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Founds the cluster, unless there is one.
    async fn found(&self) {
        let others = self.consensus.peers().len();
        let mut majority_since = None;
        loop {
            let answers = self.ask_everybody().await;
            let formed = answers.values().filter(|(_, formed)| *formed).count();
            let since = (is_majority(answers.len(), others)).then(Instant::now);
            majority_since = majority_since.or(since);
            let waited = majority_since.map(|since: Instant| since.elapsed());
            let called_on = self.standing.was_called_on();
            match decide(others, answers.len(), formed > 0 || called_on, waited) {
                Founding::Wait => sleep(FOUND_EVERY).await,
                Founding::Join => {
                    tracing::warn!(
                        "the others belong to a cluster already, and this node's disk is empty: it founds none, and \
                         waits to be taken in (lockctl members add)"
                    );
                    return;
                }
                Founding::Found => {
                    let disks = answers.into_iter().map(|(id, (disk, _))| (id, disk));
                    let me = self.network.badge();
                    match self
                        .consensus
                        .found(&disks.chain([(me.id, me.disk)]).collect())
                        .await
                    {
                        Ok(()) => self.consensus.stand_at_once().await,
                        Err(error) => tracing::error!(%error, "the cluster was not founded"),
                    }
                    return;
                }
            }
        }
    }

    /// The disk of everybody who answers, and whether it belongs to a cluster.
    async fn ask_everybody(&self) -> BTreeMap<u64, (DiskId, bool)> {
        let last = self.consensus.membership_position();
        let asking = self.consensus.peers().into_iter().map(|(id, node)| async move {
            let mut link = self.network.link(id, &node);
            Some((id, link.ask_standing(last).await.ok()?))
        });
        let answers = join_all(asking).await.into_iter().flatten();
        let mut heard = BTreeMap::new();
        for (id, (disk, answer)) in answers {
            if let Some(by) = answer.removed {
                self.consensus.learn_removal(by);
            }
            heard.insert(id, (disk, answer.formed));
        }
        heard
    }
}

/// What a founder does next.
#[derive(Debug, PartialEq, Eq)]
enum Founding {
    Wait,
    Found,
    Join,
}

/// Of so many others so many have answered; `formed`: there is a cluster already; for `waited` a majority has been there.
fn decide(others: usize, answered: usize, formed: bool, waited: Option<Duration>) -> Founding {
    let patience = match (others, answered) {
        (0, _) => LISTEN,
        (others, answered) if answered == others => Duration::ZERO,
        _ => FOUND_GRACE,
    };
    if formed {
        Founding::Join
    } else if is_majority(answered, others) && waited.is_some_and(|waited| waited >= patience) {
        Founding::Found
    } else {
        Founding::Wait
    }
}

/// Whether so many of the others and this node are more than half.
fn is_majority(answered: usize, others: usize) -> bool {
    answered + 1 > others.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn a_founder_founds_when_all_are_there_or_a_majority_is_and_the_rest_stays_away() {
        assert_eq!(decide(0, 0, false, LONG), Founding::Found, "a cluster of one");
        assert_eq!(
            decide(0, 0, false, Some(Duration::ZERO)),
            Founding::Wait,
            "it may have grown"
        );
        assert_eq!(decide(2, 2, false, Some(Duration::ZERO)), Founding::Found);
        assert_eq!(
            decide(2, 1, false, Some(Duration::ZERO)),
            Founding::Wait,
            "the third may be on its way"
        );
        assert_eq!(decide(2, 1, false, LONG), Founding::Found);
        assert_eq!(
            decide(2, 0, false, LONG),
            Founding::Wait,
            "alone it is no majority of three"
        );
        assert_eq!(decide(3, 1, false, LONG), Founding::Wait, "nor two of four");
        assert_eq!(decide(3, 2, false, LONG), Founding::Found);
        assert_eq!(decide(4, 2, false, LONG), Founding::Found);
    }

    #[test]
    fn a_founder_that_finds_a_cluster_founds_none() {
        assert_eq!(decide(2, 2, true, LONG), Founding::Join);
        assert_eq!(decide(2, 1, true, LONG), Founding::Join);
        assert_eq!(decide(0, 0, true, LONG), Founding::Join, "a leader has called");
    }
}
