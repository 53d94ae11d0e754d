//! A machine and what runs on it, life after life.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lock_core::{Command, Event, SessionEnd, SessionId};
use lock_node::raft::log::LogStore;
use lock_node::raft::{Cfg, ClusterId, Consensus, StateMachine};
use lock_node::service::{ClusterClock, FeedEvent, Replica};
use lock_node::{LockService, NodeFaults};
use openraft::{AsyncRuntime, Raft};

use super::agreement::{Agreement, Witness};
use super::door::{self, Answered, Request};
use super::link::Links;
use crate::disk::Disk;
use crate::network::{Endpoint, Network};
use crate::plan::Plant;
use crate::runtime::{LocalInstant, Scope, SimRt};

/// One life of a member: started, running, and dead with its scope.
pub struct Member {
    id: Endpoint,
    scope: Arc<Scope>,
    consensus: Consensus<SimRt>,
    service: LockService<SimRt>,
}

impl Member {
    /// Its id.
    pub fn id(&self) -> Endpoint {
        self.id
    }

    /// Where its tasks run.
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// For the checks: what it knows and does.
    pub fn service(&self) -> &LockService<SimRt> {
        &self.service
    }

    /// Serves a client.
    pub fn serve(&self, request: Request) -> BoxFuture<'static, Answered> {
        Box::pin(door::serve(self.service.clone(), request))
    }

    pub(crate) fn raft(&self) -> Raft<Cfg<SimRt>, StateMachine<SimRt>> {
        self.consensus.raft().clone()
    }
}

/// What a member's lives have in common.
#[derive(Clone)]
pub struct Machine {
    /// Its id.
    pub id: Endpoint,
    /// All members, as each is told at its start.
    pub members: Vec<lock_node::Member>,
    /// Its disk.
    pub disk: Disk,
    /// What it is connected to.
    pub network: Network,
    /// Who compares it with the others.
    pub agreement: Agreement,
    /// Entries between snapshots.
    pub snapshot_every: u64,
    /// The bug to plant.
    pub plant: Option<Plant>,
}

impl Machine {
    /// Switches it on; `None` if it is switched off again before it has come up, or cannot come up.
    pub async fn start(&self, scope: Arc<Scope>) -> Option<Arc<Member>> {
        let machine = self.clone();
        let starting = Scope::spawn(Some(scope.clone()), async move { machine.boot(scope).await });
        let member = starting.await.ok()?;
        self.network.connect(self.id, Some(member.clone()));
        Some(member)
    }

    /// What `Node::start` does, on other devices.
    async fn boot(self, scope: Arc<Scope>) -> Arc<Member> {
        let log = LogStore::<SimRt>::new(self.disk.open_log());
        let witness = Witness::new(self.agreement, self.id);
        let replica = Arc::new(Replica::observed(Box::new(witness)));
        let clock = Arc::new(ClusterClock::new());
        let machine = StateMachine::new(replica.clone(), clock.clone(), self.disk.snapshots());
        let links = Links {
            network: self.network,
            me: self.id,
        };
        let consensus = Consensus::start(self.id, &self.members, log, machine, links, self.snapshot_every)
            .await
            .expect("a node starts from whatever a crash has left on its disk");
        // Nobody is asked first: a disk of the simulation loses its last writes, never all of them.
        if consensus.may_found().await.expect("it has just started") {
            let founded = consensus.found(ClusterId::from_u128(1), &BTreeMap::new()).await;
            founded.expect("nobody else founds it");
        }
        let faults = NodeFaults::new(false, &self.members);
        let service = LockService::start(consensus.clone(), replica, clock, faults);
        if self.plant == Some(Plant::ExpireRegardless) {
            drop(SimRt::spawn(expire_regardless(service.clone())));
        }
        Arc::new(Member {
            id: self.id,
            scope,
            consensus,
            service,
        })
    }
}

/// [`Plant::ExpireRegardless`]: the leader counts for itself, from the opening, and closes what is over.
async fn expire_regardless(service: LockService<SimRt>) {
    let mut feed = service.events();
    let mut open: BTreeMap<SessionId, LocalInstant> = BTreeMap::new();
    loop {
        while let Ok(Ok(item)) = SimRt::timeout(Duration::from_millis(50), feed.next()).await {
            for event in item.events {
                match event {
                    FeedEvent::Lock(Event::SessionOpened { session_id, ttl, .. }) => {
                        let ends = <SimRt as lock_node::ServiceRt>::now() + Duration::from_millis(ttl.get());
                        open.insert(session_id, ends);
                    }
                    FeedEvent::Lock(Event::SessionClosed {
                        session_id,
                        reason: SessionEnd::Closed | SessionEnd::Expired,
                    }) => drop(open.remove(&session_id)),
                    _ => {}
                }
            }
        }
        let now = <SimRt as lock_node::ServiceRt>::now();
        for session_id in open.iter().filter(|(_, ends)| **ends < now).map(|(id, _)| *id) {
            let _ = service.propose(Command::CloseSession { session_id }).await;
        }
        SimRt::sleep(Duration::from_millis(50)).await;
    }
}
