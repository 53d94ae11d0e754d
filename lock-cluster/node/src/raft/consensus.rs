//! The one handle on the consensus library that the rest of the crate sees: submit, read index, status.
//!
//! Its errors are [`ServiceError`]s: this is where "forward to leader", "log entry discarded", timeouts and a
//! stopped core become what a caller can act on. The rule is the one of openraft issue 2095: unless the entry is
//! known *not* to have been appended here, its fate is unknown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::Reply;
use openraft::async_runtime::{Oneshot, WatchReceiver};
use openraft::errors::{ClientWriteError, ForwardToLeader, LinearizableReadError, RaftError};
use openraft::impls::OneshotResponder;
use openraft::network::RaftNetworkFactory;
use openraft::raft::ClientWriteResult;
use openraft::{Raft, ReadPolicy};

use super::ids::{ClusterId, DiskId};
use super::log::LogStore;
use super::runtime::ServiceRt;
use super::settings::{ELECTION_MS_MAX, settings};
use super::state_machine::StateMachine;
use super::types::{Batch, Cfg, PeerNode, Position};
use crate::config::Member;
use crate::service::{Leader, ServiceError};

/// How long a read waits for a majority to confirm that this node still leads.
const READ_DEADLINE: Duration = Duration::from_secs(2);
/// How often whoever waits for the end of the library looks.
const STOPPED_LOOK_EVERY: Duration = Duration::from_millis(200);
/// A leader that no majority has answered for so long should be assumed to be cut off, and so should a member that has
/// heard no leader.
const OUT_OF_TOUCH: Duration = Duration::from_millis(3 * ELECTION_MS_MAX);

type Write<R> = ClientWriteResult<Cfg<R>>;

/// A submitted entry whose outcome is to come.
pub struct Pending<R: ServiceRt>(<R::Oneshot as Oneshot>::Receiver<Write<R>>);

/// One node's part in the consensus. Clones share it.
pub struct Consensus<R: ServiceRt> {
    pub(super) id: u64,
    pub(super) raft: Raft<Cfg<R>, StateMachine<R>>,
    log: LogStore<R>,
    /// Held while the membership is being changed, see `membership.rs`.
    pub(super) changing: Arc<tokio::sync::Mutex<()>>,
    /// The membership without this node that somebody has told it of, if it is newer than what its own log says.
    pub(super) removed: Arc<Mutex<Option<Position>>>,
    /// The members as this node was told at its start. Their addresses win over those in the log, which may be
    /// from before a move.
    pub(super) told: Arc<BTreeMap<u64, PeerNode>>,
    /// For how long no leader has sent anything.
    silence: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl<R: ServiceRt> Clone for Consensus<R> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            raft: self.raft.clone(),
            log: self.log.clone(),
            changing: self.changing.clone(),
            removed: self.removed.clone(),
            told: self.told.clone(),
            silence: self.silence.clone(),
        }
    }
}

impl<R: ServiceRt> Consensus<R> {
    /// Starts from what the disk holds: installs the snapshot, applies the log behind it up to the last index known
    /// to be committed, and takes part from then on.
    pub async fn start<N>(
        id: u64,
        members: &[Member],
        log: LogStore<R>,
        machine: StateMachine<R>,
        network: N,
        snapshot_every: u64,
    ) -> anyhow::Result<Self>
    where
        N: RaftNetworkFactory<Cfg<R>>,
        N::Network: openraft::network::NetSnapshot<Cfg<R>, SnapshotData = bytes::Bytes>,
    {
        let raft = Raft::new(
            id,
            Arc::new(settings(snapshot_every)),
            network,
            log.clone(),
            machine,
        )
        .await?;
        Ok(Self {
            id,
            raft,
            log,
            changing: Arc::default(),
            removed: Arc::default(),
            told: Arc::new(nodes(members)),
            silence: Arc::new(|| Duration::ZERO),
        })
    }

    /// The same, told for how long no leader has sent anything. The library goes by votes: a member that is left alone
    /// names for ever the last leader that it voted for.
    pub(crate) fn hearing(mut self, silence: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.silence = Arc::new(silence);
        self
    }

    /// Waits for the library's first report. Before that a node looks to itself as if its log were empty, and would let
    /// in whoever shows another disk than the log records.
    pub(crate) async fn looked_at_its_log(&self) -> anyhow::Result<()> {
        // It reports before it answers anything.
        Ok(self.raft.with_raft_state(|_| ()).await?)
    }

    /// Whether this is the member to found the cluster, and that was not done before. Every node may ask at every
    /// start: the lowest id is the one, and only while its own log is empty.
    pub async fn may_found(&self) -> anyhow::Result<bool> {
        Ok(self.told.keys().next() == Some(&self.id) && !self.raft.is_initialized().await?)
    }

    /// Founds `cluster`, with the members that this node was told of and their disks. The caller has made sure that
    /// there is no other: see `peer/belonging.rs`.
    pub async fn found(&self, cluster: ClusterId, disks: &BTreeMap<u64, DiskId>) -> anyhow::Result<()> {
        let mut members = (*self.told).clone();
        for (id, node) in &mut members {
            node.disk = disks.get(id).copied();
            node.cluster = Some(cluster);
        }
        tracing::info!(cluster.id = %cluster, members = ?members.keys().collect::<Vec<_>>(), "founding the cluster");
        self.raft.initialize(members).await?;
        Ok(())
    }

    /// The library's own handle: for whoever receives what peers send.
    pub fn raft(&self) -> &Raft<Cfg<R>, StateMachine<R>> {
        &self.raft
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The term in which this node leads, as far as it knows.
    pub(crate) fn leading(&self) -> Result<u64, ServiceError> {
        match self.raft.as_leader() {
            Ok(leader) => Ok(leader.leader_id().term),
            Err(forward) => Err(self.elsewhere(&forward)),
        }
    }

    /// Whether this node believes to lead although no majority has answered it for long. A lone voter is its own majority:
    /// nobody's answer ever renews what the library notes at its election.
    pub(crate) fn is_out_of_touch(&self) -> bool {
        let needs_answers = || {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow_watched();
            metrics
                .membership_config
                .membership()
                .voter_ids()
                .any(|id| id != self.id)
        };
        let overdue = self.raft.as_leader().is_ok_and(|leader| {
            leader
                .last_quorum_acked()
                .is_some_and(|at| R::since(at) > OUT_OF_TOUCH)
        });
        overdue && needs_answers()
    }

    /// Whether no leader has sent anything for long; of no meaning on the leader itself.
    pub(super) fn is_left_alone(&self) -> bool {
        (self.silence)() > OUT_OF_TOUCH
    }

    /// Hands an entry to the library, to be appended in this order and in `term` or not at all: it was stamped with
    /// the clock of that term's leader.
    pub(crate) async fn submit(&self, term: u64, batch: Batch) -> Result<Pending<R>, ServiceError> {
        let (responder, outcome) = OneshotResponder::new_pair();
        match self
            .raft
            .write(batch)
            .with_leader(term)
            .responder(responder)
            .await
        {
            Ok(()) => Ok(Pending(outcome)),
            Err(_stopped) => Err(ServiceError::ShuttingDown),
        }
    }

    /// Waits until a submitted entry was applied.
    pub(crate) async fn outcome(&self, Pending(outcome): Pending<R>) -> Result<Vec<Reply>, ServiceError> {
        match outcome.await {
            Ok(Ok(written)) => {
                tracing::Span::current().record("raft.log_index", written.log_id.index);
                Ok(written.data)
            }
            // Turned away before it was appended.
            Ok(Err(ClientWriteError::ForwardToLeader(forward))) => Err(self.elsewhere(&forward)),
            Ok(Err(ClientWriteError::LogEntryDiscarded(_))) => Err(ServiceError::Unknown),
            Ok(Err(error)) => {
                tracing::error!(%error, "an entry was refused for a reason that does not apply to it");
                Err(ServiceError::Unknown)
            }
            // The core stopped with the entry in its hands.
            Err(_gone) => Err(ServiceError::Unknown),
        }
    }

    /// Returns when this node has applied everything that was committed before the call, and led throughout: a
    /// majority has said so *after* the call came in. A lease would be faster, and wrong on a node that was stopped.
    pub(crate) async fn read_index(&self) -> Result<(), ServiceError> {
        match R::timeout(
            READ_DEADLINE,
            self.raft.ensure_linearizable(ReadPolicy::ReadIndex),
        )
        .await
        {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)))) => {
                Err(self.elsewhere(&forward))
            }
            Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)))) | Err(_) => {
                Err(ServiceError::NoLeader)
            }
            Ok(Err(RaftError::Fatal(_))) => Err(ServiceError::ShuttingDown),
        }
    }

    /// Takes a snapshot now, instead of when enough entries have come together.
    pub(crate) async fn snapshot_now(&self) -> Result<(), ServiceError> {
        self.raft
            .trigger()
            .snapshot()
            .await
            .map_err(|_stopped| ServiceError::ShuttingDown)
    }

    /// Resolves when the library has given up, with the reason: its disk failed, or the state panicked.
    ///
    /// Looks at the news now and then: the library's metrics change several times with every entry, and to be woken
    /// each time (in a program of its own that is another thread) costs more than all else that a lone commit does.
    pub async fn stopped(&self) -> String {
        let mut metrics = self.raft.metrics();
        loop {
            if let Err(reason) = &metrics.borrow_watched().running_state {
                return reason.to_string();
            }
            R::sleep(STOPPED_LOOK_EVERY).await;
            if metrics.changed().await.is_err() {
                return "the consensus core is gone".to_owned();
            }
        }
    }

    /// How often the log has called fdatasync; 0 once this has been shut down.
    pub(crate) fn log_syncs(&self) -> u64 {
        self.log.syncs()
    }

    /// Stops taking part and lets go of the disk.
    pub async fn shutdown(&self) {
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "the consensus core did not stop cleanly");
        }
        self.log.close();
    }

    pub(super) fn elsewhere(&self, forward: &ForwardToLeader<Cfg<R>>) -> ServiceError {
        match forward.leader_id {
            // Itself: its lease has run out, or it is handing over. Nobody leads until that is settled.
            Some(id) if id != self.id && !self.is_left_alone() => ServiceError::NotLeader {
                leader: self.leader(id, forward.leader_node.as_ref()),
            },
            _ => ServiceError::NoLeader,
        }
    }

    pub(super) fn leader(&self, id: u64, logged: Option<&PeerNode>) -> Leader {
        let node = self.told.get(&id).or(logged);
        Leader {
            id,
            client_url: node.map(|node| node.client_url.clone()).unwrap_or_default(),
        }
    }
}

/// The members as the log records them.
pub(crate) fn nodes(members: &[Member]) -> BTreeMap<u64, PeerNode> {
    let node = |member: &Member| PeerNode {
        peer_addr: member.peer_addr.clone(),
        client_url: member.client_url(),
        disk: None,
        cluster: None,
    };
    members.iter().map(|member| (member.id, node(member))).collect()
}
