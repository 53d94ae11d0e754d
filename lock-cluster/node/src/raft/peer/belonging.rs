//! Whether this node belongs to a cluster, and with whom: what it asks its peers about outside of Raft.
//!
//! * **Nobody founds a second cluster.** The member that may found one (the lowest id, with `--bootstrap`, on a disk that
//!   is of no cluster) asks all others first, and founds when each of them has shown a disk that is of none either. One
//!   that is of a cluster says so; then this disk is a new one and waits to be taken in. One that does not answer may be
//!   of a cluster, so it is waited for: a majority is enough to go on, but not to begin (decision 0021). A founder that
//!   was told of nobody else listens for a moment whether a leader calls on it.
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
use super::super::ids::{ClusterId, DiskId};
use super::super::runtime::Tokio;
use super::client::PeerNetwork;
use super::standing::Standing;

/// How often a founder asks who is there.
const FOUND_EVERY: Duration = Duration::from_millis(100);
/// How often it says for whom it waits.
const SAY_EVERY: Duration = Duration::from_secs(5);
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
        let of_none = self.network.me().identity.cluster().is_none();
        if self.bootstrap && of_none && matches!(self.consensus.may_found().await, Ok(true)) {
            self.found().await;
        }
        // At once, the first time: a member that comes back on another disk should hear of it before anything else.
        let mut asked = false;
        loop {
            self.standing.record(self.consensus.recorded_disks());
            if self.consensus.leading().is_ok() {
                let mut seen = self.standing.seen();
                let me = &self.network.me().identity;
                seen.insert(me.member(), me.disk());
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
        let others = self.consensus.peers();
        let began = Instant::now();
        let mut said = began;
        loop {
            let answers = self.ask_everybody().await;
            let formed = answers.values().any(|(_, formed)| *formed) || self.standing.was_called_on();
            match decide(others.len(), answers.len(), formed, began.elapsed()) {
                Founding::Wait => {
                    if said.elapsed() >= SAY_EVERY {
                        said = Instant::now();
                        let silent: Vec<u64> = others
                            .keys()
                            .filter(|id| !answers.contains_key(id))
                            .copied()
                            .collect();
                        tracing::warn!(
                            ?silent,
                            "waiting to found the cluster until these members have answered, too: each must say that \
                             it is of none. Start them, or leave out of --member, on all nodes, who shall not be a founder"
                        );
                    }
                    sleep(FOUND_EVERY).await;
                }
                Founding::Join => {
                    tracing::warn!(
                        "the others belong to a cluster already, and this node's disk is empty: it founds none, and \
                         waits to be taken in (lockctl members add)"
                    );
                    return;
                }
                Founding::Found => {
                    let disks = answers.into_iter().map(|(id, (disk, _))| (id, disk));
                    if let Err(error) = self.found_with(disks.collect()).await {
                        tracing::error!(%error, "the cluster was not founded");
                    }
                    return;
                }
            }
        }
    }

    /// Founds the cluster, with the members on these disks and on this node's own.
    async fn found_with(&self, mut disks: BTreeMap<u64, DiskId>) -> anyhow::Result<()> {
        let me = self.network.me().identity.clone();
        disks.insert(me.member(), me.disk());
        let cluster = ClusterId::drawn();
        me.found(cluster)?;
        self.consensus.found(cluster, &disks).await?;
        tokio::task::spawn_blocking(move || me.join(cluster)).await??;
        self.consensus.stand_at_once().await;
        Ok(())
    }

    /// The disk of everybody who answers, and whether it is of a cluster.
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

/// Of so many others so many have answered; `formed`: there is a cluster already; it has been asked about for `asked`.
fn decide(others: usize, answered: usize, formed: bool, asked: Duration) -> Founding {
    if formed {
        Founding::Join
    } else if answered < others || (others == 0 && asked < LISTEN) {
        Founding::Wait
    } else {
        Founding::Found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_founder_founds_when_all_have_answered_and_not_before() {
        assert_eq!(decide(0, 0, false, LONG), Founding::Found, "a cluster of one");
        assert_eq!(
            decide(0, 0, false, Duration::ZERO),
            Founding::Wait,
            "it may have grown"
        );
        assert_eq!(decide(2, 2, false, Duration::ZERO), Founding::Found);
        assert_eq!(
            decide(2, 1, false, LONG),
            Founding::Wait,
            "the third may have what the other two have lost"
        );
        assert_eq!(decide(4, 3, false, LONG), Founding::Wait);
    }

    #[test]
    fn a_founder_that_finds_a_cluster_founds_none() {
        assert_eq!(decide(2, 2, true, LONG), Founding::Join);
        assert_eq!(decide(2, 1, true, LONG), Founding::Join);
        assert_eq!(decide(0, 0, true, LONG), Founding::Join, "a leader has called");
    }
}
