//! Who belongs to the cluster, and how that changes while it works.
//!
//! A change of voters takes two entries (Raft's joint consensus): under the first, old and new majorities both have to
//! agree; the second leaves the new one alone. The library does that; what it takes for granted is looked after here:
//!
//! * **One change at a time, decided where it is made.** What to change is worked out while the lock is held, and is
//!   told to the library as a difference ("this voter more"), never as a whole set that was read before: of two
//!   administrators who each add a member, neither undoes what the other did.
//! * **No change that would stop the cluster.** A member becomes a voter only when it has nearly caught up and its
//!   disk is on record, and a voter leaves only when a majority of those who stay is answering: has answered *since the
//!   change was asked for*, so that one that has just died is not counted on. The library would append the change, and
//!   wait.
//! * **A change that waits all the same says for whom.** A voter can still die in the moment between; from then on the
//!   cluster waits for it, as it would had it died a moment later.
//! * **A change that was begun is finished.** A leader that dies between the two entries leaves a cluster that needs
//!   both majorities for everything. [`Consensus::finish_change`] writes the second entry; every node that leads calls
//!   it now and then.
//! * **None by a leader that is itself being removed**, which the library would stop at.
//!
//! A leader that removes itself goes on until its removal is committed, and then hands over (the library does, to the
//! voter whose log is longest): nobody waits for an election timeout.

use std::collections::BTreeSet;
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::RaftMetrics;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};

use super::consensus::Consensus;
use super::runtime::ServiceRt;
use super::settings::ELECTION_MS_MAX;
use super::types::{Cfg, PeerNode, Position};
use crate::config::Member;
use crate::service::ServiceError;

/// How long a membership change may take.
const CHANGE_DEADLINE: Duration = Duration::from_secs(30);
/// How long a member that shall vote is given to catch up first.
const CATCH_UP_DEADLINE: Duration = Duration::from_secs(15);
/// How often its progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A member this close behind has caught up: what is missing takes one request.
const CLOSE_BEHIND: u64 = 200;
/// How long the library may take to report a change that it has made.
const REPORT_DEADLINE: Duration = Duration::from_secs(1);
/// A member that has not answered the leader for so long is not counted on.
const ANSWERS_WITHIN: Duration = Duration::from_millis(2 * ELECTION_MS_MAX);
/// How long those who would be left are given to answer before a voter is removed. Heartbeats ask ten times a second.
const ASK_AROUND: Duration = Duration::from_secs(3);

type Change = ChangeMembers<u64, PeerNode>;

impl<R: ServiceRt> Consensus<R> {
    /// Adds a member that receives the log without voting. One that belongs to the cluster already stays what it is.
    pub(crate) async fn add_learner(&self, member: &Member) -> Result<(), ServiceError> {
        let node = PeerNode {
            peer_addr: member.peer_addr.clone(),
            client_url: member.client_url(),
            // Recorded when the leader has seen it.
            disk: None,
            cluster: self.cluster(),
        };
        let place = |node: &PeerNode| (node.peer_addr.clone(), node.client_url.clone());
        self.change(
            |view| match view.metrics.membership_config.membership().get_node(&member.id) {
                None => Ok(Some(Change::AddNodes([(member.id, node)].into()))),
                Some(known) if place(known) == place(&node) => Ok(None),
                Some(known) => Err(refused(format!(
                    "{} is a member already, at {} and {}",
                    member.id, known.peer_addr, known.client_url
                ))),
            },
        )
        .await
    }

    /// Makes a member a voter, once it has caught up.
    pub(crate) async fn promote(&self, id: u64) -> Result<(), ServiceError> {
        self.caught_up(id).await?;
        self.change(|view| match view.is_voter(id) {
            true => Ok(None),
            false => Ok(Some(Change::AddVoterIds([id].into()))),
        })
        .await
    }

    /// Removes a member, be it this node. One that does not belong to the cluster is removed already.
    pub(crate) async fn remove(&self, id: u64) -> Result<(), ServiceError> {
        self.the_others_answer(id).await?;
        self.change(|view| {
            if !view.is_member(id) {
                return Ok(None);
            }
            let mut stay = view.voters();
            if !stay.remove(&id) {
                return Ok(Some(Change::RemoveNodes([id].into())));
            }
            if stay.is_empty() {
                return Err(ServiceError::LastVoter);
            }
            view.check_majority_answers(&stay, ANSWERS_WITHIN)?;
            Ok(Some(Change::RemoveVoters([id].into())))
        })
        .await
    }

    /// Makes exactly these the voters; each must be a member already, and a voter that is left out is removed.
    pub(crate) async fn change_members(&self, voters: BTreeSet<u64>) -> Result<(), ServiceError> {
        self.change(|_| Ok(Some(Change::ReplaceAllVoters(voters)))).await
    }

    /// Finishes a change whose leader died half-way; without effect if there is none, or if it is this node's own
    /// and going on.
    pub(crate) async fn finish_change(&self) {
        let Ok(_turn) = self.changing.try_lock() else {
            return;
        };
        if self.leading().is_err() || !self.view().is_stuck_half_way() {
            return;
        }
        tracing::info!("finishing a membership change that was left half-way");
        // No voter more than the change was about: what is left of it is its second half.
        let second_half = self
            .raft
            .change_membership(Change::AddVoterIds(BTreeSet::new()), false);
        match R::timeout(CHANGE_DEADLINE, second_half).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the membership change is still half-way"),
            Err(_) => tracing::warn!("the membership change is still half-way"),
        }
    }

    /// Makes a change, if `decide` finds one to be made; one at a time.
    pub(super) async fn change(
        &self,
        decide: impl FnOnce(&View<R>) -> Result<Option<Change>, ServiceError> + Send,
    ) -> Result<(), ServiceError> {
        let in_turn = async {
            let _turn = self.changing.lock().await;
            self.leading()?;
            let view = self.view();
            if !view.is_member(self.id) {
                // Leading on its way out: nobody leads until that is settled.
                return Err(ServiceError::NoLeader);
            }
            let Some(change) = decide(&view)? else {
                return Ok(());
            };
            match self.raft.change_membership(change, false).await {
                Ok(changed) => {
                    self.seen_here(changed.log_id).await;
                    Ok(())
                }
                Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => {
                    Err(self.elsewhere(&forward))
                }
                Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_))) => {
                    Err(ServiceError::Unknown)
                }
                // An earlier one, whose caller has given up.
                Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(
                    ChangeMembershipError::InProgress(_),
                ))) => Err(self.view().pending()),
                Err(RaftError::APIError(error)) => Err(refused(error.to_string())),
                Err(RaftError::Fatal(_)) => Err(ServiceError::ShuttingDown),
            }
        };
        match R::timeout(CHANGE_DEADLINE, in_turn).await {
            Ok(changed) => changed,
            Err(_) if self.leading().is_ok() => Err(self.view().pending()),
            Err(_) => Err(ServiceError::Unknown),
        }
    }

    /// Waits until this node's own view has the change at `position`: whoever made it looks there next, and so does the
    /// change that comes after it.
    async fn seen_here(&self, position: Position) {
        let has_it = |metrics: &RaftMetrics<Cfg<R>>| {
            *metrics.membership_config.log_id() >= Some(position)
                && *metrics.committed_membership_config.log_id() >= Some(position)
        };
        let reports = self.raft.wait(Some(REPORT_DEADLINE));
        // An error means that the node is stopping, or stands still: what was changed is changed.
        let _ = reports.metrics(has_it, "a change of members").await;
    }

    /// Waits until a majority of the voters who would be left without this one has answered since it was asked for.
    async fn the_others_answer(&self, id: u64) -> Result<(), ServiceError> {
        let began = R::now();
        loop {
            self.leading()?;
            let view = self.view();
            let mut stay = view.voters();
            if !stay.remove(&id) || stay.is_empty() {
                // There is nothing to wait for: it is no voter, or the last.
                return Ok(());
            }
            match view.check_majority_answers(&stay, R::since(began)) {
                Err(refused) if R::since(began) > ASK_AROUND => return Err(refused),
                Err(_) => R::sleep(LOOK_EVERY).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Waits until a member is close behind this leader, and its disk on record: a voter whose disk is not could lose it
    /// without being noticed. Not under the lock: others may change something meanwhile, and that record is a change.
    async fn caught_up(&self, id: u64) -> Result<(), ServiceError> {
        let began = R::now();
        loop {
            self.leading()?;
            let view = self.view();
            if !view.is_member(id) {
                return Err(refused(format!("{id} is no member: add it first")));
            }
            if view.is_voter(id) {
                return Ok(());
            }
            let behind = view.behind(id);
            let answers = view.answers(id, R::since(began));
            let recorded = view.is_recorded(id);
            if answers && behind <= CLOSE_BEHIND && recorded {
                return Ok(());
            }
            if R::since(began) > CATCH_UP_DEADLINE {
                let why = match answers {
                    true if behind > CLOSE_BEHIND => format!("it is {behind} entries behind"),
                    true => "its disk is not recorded yet".to_owned(),
                    false => "it does not answer the leader (if it is there and refuses, the leader's log says why)"
                        .to_owned(),
                };
                return Err(refused(format!("{id} cannot vote yet: {why}")));
            }
            R::sleep(LOOK_EVERY).await;
        }
    }

    fn view(&self) -> View<R> {
        View {
            me: self.id,
            metrics: self.raft.metrics().borrow_watched().clone(),
        }
    }
}

/// What this node knows about the members, as of the library's last report.
pub(super) struct View<R: ServiceRt> {
    me: u64,
    pub(super) metrics: RaftMetrics<Cfg<R>>,
}

impl<R: ServiceRt> View<R> {
    fn is_member(&self, id: u64) -> bool {
        self.metrics
            .membership_config
            .membership()
            .get_node(&id)
            .is_some()
    }

    fn is_voter(&self, id: u64) -> bool {
        self.voters().contains(&id)
    }

    /// Whether the log records a member's disk.
    fn is_recorded(&self, id: u64) -> bool {
        let membership = self.metrics.membership_config.membership();
        membership.get_node(&id).is_some_and(|node| node.disk.is_some())
    }

    /// Those who vote when the change that may be going on is done.
    fn voters(&self) -> BTreeSet<u64> {
        let membership = self.metrics.membership_config.membership();
        membership.get_joint_config().last().cloned().unwrap_or_default()
    }

    /// Between the two entries of a change, the first of them committed.
    fn is_stuck_half_way(&self) -> bool {
        let effective = &self.metrics.membership_config;
        effective.membership().get_joint_config().len() > 1
            && effective.log_id() == self.metrics.committed_membership_config.log_id()
    }

    fn behind(&self, id: u64) -> u64 {
        let end = |last: Option<u64>| last.map_or(0, |index| index + 1);
        let replication = self.metrics.replication.as_ref();
        let matched = replication.and_then(|all| all.get(&id)?.as_ref().map(|position| position.index));
        end(self.metrics.last_log_index).saturating_sub(end(matched))
    }

    /// Whether a member has answered the leader within this time.
    fn answers(&self, id: u64, within: Duration) -> bool {
        let heard = self
            .metrics
            .heartbeat
            .as_ref()
            .and_then(|all| all.get(&id)?.as_ref());
        id == self.me || heard.is_some_and(|heard| R::since(**heard) < within)
    }

    fn check_majority_answers(&self, voters: &BTreeSet<u64>, within: Duration) -> Result<(), ServiceError> {
        let answering = voters.iter().filter(|id| self.answers(**id, within)).count();
        match answering > voters.len() / 2 {
            true => Ok(()),
            false => Err(refused(format!(
                "of the voters {voters:?} that would be left, {answering} answer: the cluster would stand still"
            ))),
        }
    }
}

impl<R: ServiceRt> View<R> {
    /// What to say of a change that is under way.
    fn pending(&self) -> ServiceError {
        let voters: BTreeSet<u64> = self.metrics.membership_config.membership().voter_ids().collect();
        let silent: Vec<u64> = voters
            .into_iter()
            .filter(|id| !self.answers(*id, ANSWERS_WITHIN))
            .collect();
        ServiceError::MembershipPending(match silent.as_slice() {
            [] => "it needs a majority of the voters before and after it".to_owned(),
            silent => format!(
                "it needs a majority of the voters before and after it, and of these {silent:?} do not answer: start them \
                 again"
            ),
        })
    }
}

fn refused(why: String) -> ServiceError {
    ServiceError::MembershipRefused(why)
}
