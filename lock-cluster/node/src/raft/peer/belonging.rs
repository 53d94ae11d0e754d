//! Whether this node belongs to a cluster, and with whom: what it asks its peers about outside of Raft.
//!
//! * **Nobody founds a second cluster.** The member that may found one (the lowest id, with `--bootstrap`, on a disk that
//!   is of no cluster) asks all others first, and founds at once when each of them has shown a disk that is of none either.
//!   One that is of a cluster says so; then this disk is a new one and waits to be taken in. One that does not answer may
//!   be of a cluster, so it is waited for: for [`GRACE`], after which a majority is enough, or for as long as it takes if
//!   the founder was told to want all of them (decision 0021). A founder that was told of nobody else listens for a moment
//!   whether a leader calls on it.
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
/// How long it waits for the last of them, from when it began to ask; from then on a majority is enough.
const GRACE: Duration = Duration::from_secs(5);
/// How often a node says for whom it waits, or for what.
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
    /// Whether it wants all other members to have answered first, however long that takes.
    pub(crate) bootstrap_all: bool,
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
        let mut said = Instant::now();
        loop {
            if said.elapsed() >= SAY_EVERY && self.waits_to_be_taken_in().await {
                said = Instant::now();
                self.say_that_it_waits();
            }
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

    /// Whether it was told to found a cluster and cannot, because there is one that it has nothing of.
    async fn waits_to_be_taken_in(&self) -> bool {
        let of_one = self.network.me().identity.cluster().is_some();
        self.bootstrap
            && self.consensus.membership_position().is_none()
            && (of_one || matches!(self.consensus.may_found().await, Ok(true)))
    }

    /// Without a word, it would look like a node that hangs.
    fn say_that_it_waits(&self) {
        let me = &self.network.me().identity;
        let id = me.member();
        match me.cluster() {
            Some(cluster) => tracing::warn!(
                node.id = id,
                cluster.id = %cluster,
                "this node is of that cluster and has nothing of its log: it founds none, and waits for that cluster's \
                 leader. If there is no such cluster, stop it and empty its data directory"
            ),
            None => tracing::warn!(
                node.id = id,
                "the others belong to a cluster already, and this node's disk is empty: it founds none, and waits to be \
                 taken in (lockctl members add)"
            ),
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
            let silent: Vec<u64> = others
                .keys()
                .filter(|id| !answers.contains_key(id))
                .copied()
                .collect();
            let grace = if self.bootstrap_all { Duration::MAX } else { GRACE };
            match decide(others.len(), answers.len(), formed, began.elapsed(), grace) {
                Founding::Wait => {
                    if said.elapsed() >= SAY_EVERY {
                        said = Instant::now();
                        tracing::warn!(
                            ?silent,
                            "waiting to found the cluster until these members have answered, too: each must say that \
                             it is of none. Start them, or leave out of --member, on all nodes, who shall not be a founder"
                        );
                    }
                    sleep(FOUND_EVERY).await;
                }
                Founding::Join => {
                    self.say_that_it_waits();
                    return;
                }
                Founding::Found => {
                    if !silent.is_empty() {
                        tracing::warn!(
                            ?silent,
                            "founding the cluster with a majority: these members have not said that they are of none"
                        );
                    }
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

/// Of so many others so many have answered; `formed`: there is a cluster already; it has been asked about for `asked`. After
/// `grace` a majority is enough, this node among it.
fn decide(others: usize, answered: usize, formed: bool, asked: Duration, grace: Duration) -> Founding {
    let enough = if others == 0 {
        asked >= LISTEN
    } else {
        answered == others || (asked >= grace && 2 * (answered + 1) > others + 1)
    };
    match (formed, enough) {
        (true, _) => Founding::Join,
        (false, true) => Founding::Found,
        (false, false) => Founding::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_founder_founds_at_once_when_all_have_answered() {
        let decide = |others, answered, asked| decide(others, answered, false, asked, Duration::MAX);
        assert_eq!(decide(0, 0, LONG), Founding::Found, "a cluster of one");
        assert_eq!(decide(0, 0, Duration::ZERO), Founding::Wait, "it may have grown");
        assert_eq!(decide(2, 2, Duration::ZERO), Founding::Found);
    }

    #[test]
    fn a_founder_that_wants_all_of_them_waits_for_all_of_them() {
        let decide = |others, answered| decide(others, answered, false, LONG, Duration::MAX);
        assert_eq!(
            decide(2, 1),
            Founding::Wait,
            "the third may have what the other two have lost"
        );
        assert_eq!(decide(4, 3), Founding::Wait);
    }

    #[test]
    fn a_majority_is_enough_after_the_grace_and_not_before() {
        let decide = |others, answered, asked| decide(others, answered, false, asked, GRACE);
        assert_eq!(decide(2, 1, GRACE - Duration::from_millis(1)), Founding::Wait);
        assert_eq!(decide(2, 1, GRACE), Founding::Found);
        assert_eq!(decide(2, 0, LONG), Founding::Wait);
        assert_eq!(decide(3, 1, LONG), Founding::Wait, "two of four");
        assert_eq!(decide(4, 2, LONG), Founding::Found);
    }

    #[test]
    fn a_founder_that_finds_a_cluster_founds_none() {
        let decide = |others, answered| decide(others, answered, true, LONG, GRACE);
        assert_eq!(decide(2, 2), Founding::Join);
        assert_eq!(decide(2, 1), Founding::Join);
        assert_eq!(decide(0, 0), Founding::Join, "a leader has called");
    }
}
