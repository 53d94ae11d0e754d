//! What the library knows about this node and, on the leader, about the others; in our words.

use std::collections::{BTreeMap, BTreeSet};

use openraft::async_runtime::WatchReceiver;
use openraft::{RaftMetrics, ServerState};

use super::consensus::Consensus;
use super::ids::ClusterId;
use super::removal::cluster_of;
use super::runtime::ServiceRt;
use super::types::{Cfg, PeerNode};
use crate::service::{Leader, MemberStatus, Role};

/// A moment's view of the consensus.
pub(crate) struct ConsensusStatus {
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) role: Role,
    pub(crate) term: u64,
    pub(crate) leader: Option<Leader>,
    pub(crate) last_log: Option<u64>,
    pub(crate) committed: Option<u64>,
    pub(crate) applied: Option<u64>,
    pub(crate) snapshot: Option<u64>,
    pub(crate) members: Vec<MemberStatus>,
    pub(crate) changing: bool,
    pub(crate) lag: BTreeMap<u64, u64>,
}

impl<R: ServiceRt> Consensus<R> {
    /// As of the library's last report, which is at most a tick old.
    pub(crate) fn status(&self) -> ConsensusStatus {
        // Copied out: the reference is a lock that the core wants back.
        let metrics: RaftMetrics<Cfg<R>> = self.raft.metrics().borrow_watched().clone();
        let members = self.members(&metrics);
        let lag = match metrics.state {
            ServerState::Leader => {
                let others = members.iter().filter(|member| member.id != self.id);
                let behind = |member: &MemberStatus| {
                    entries(metrics.last_log_index).saturating_sub(entries(member.matched))
                };
                others.map(|member| (member.id, behind(member))).collect()
            }
            _ => BTreeMap::new(),
        };
        let membership = metrics.membership_config.membership();
        ConsensusStatus {
            cluster: cluster_of(&metrics),
            role: match metrics.state {
                ServerState::Learner | ServerState::Follower | ServerState::Candidate
                    if self.is_removed(&metrics) =>
                {
                    Role::Removed
                }
                ServerState::Learner => Role::Learner,
                ServerState::Follower => Role::Follower,
                ServerState::Candidate => Role::Candidate,
                ServerState::Leader => Role::Leader,
                ServerState::Shutdown => Role::Stopped,
            },
            term: metrics.current_term,
            // A leader that was removed and has handed over still finds its own name in its vote.
            leader: metrics
                .current_leader
                .filter(|id| match *id == self.id {
                    true => metrics.state == ServerState::Leader,
                    false => !self.is_left_alone(),
                })
                .map(|id| self.leader(id, membership.get_node(&id))),
            last_log: metrics.last_log_index,
            committed: metrics.local_committed.map(|position| position.index),
            applied: metrics.last_applied.map(|position| position.index),
            snapshot: metrics.snapshot.map(|position| position.index),
            members,
            changing: membership.get_joint_config().len() > 1,
            lag,
        }
    }

    fn members(&self, metrics: &RaftMetrics<Cfg<R>>) -> Vec<MemberStatus> {
        let membership = metrics.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let matched = |id: u64| {
            let position = metrics.replication.as_ref()?.get(&id)?.as_ref()?;
            Some(position.index)
        };
        let silent_ms = |id: u64| {
            let answered = metrics.heartbeat.as_ref()?.get(&id)?.as_ref()?;
            u64::try_from(R::since(**answered).as_millis()).ok()
        };
        let status = |(id, logged): (&u64, &PeerNode)| {
            let node = self.told.get(id).unwrap_or(logged);
            MemberStatus {
                id: *id,
                peer_addr: node.peer_addr.clone(),
                client_url: node.client_url.clone(),
                voter: voters.contains(id),
                recorded: logged.disk.is_some(),
                matched: matched(*id),
                silent_ms: silent_ms(*id),
            }
        };
        membership.nodes().map(status).collect()
    }
}

/// How many entries a log has that ends at this index.
fn entries(last: Option<u64>) -> u64 {
    last.map_or(0, |index| index + 1)
}
