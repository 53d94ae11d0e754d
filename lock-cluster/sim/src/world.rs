//! One run, from the first start to the verdict.
//!
//! First the faults and the clients, for as long as the plan says. Then everything is mended and every dead node
//! started, and it must become well within bounds: clients finish what they were at, every name can be acquired,
//! dead sessions go, and at the end nothing is left in the tables. What must never happen is checked at the end from
//! what was written down on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lock_core::LockName;
use lock_node::service::NodeStatus;
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::client::{Client, Scribe};
use crate::cluster::{Agreement, Machine};
use crate::disk::Disk;
use crate::nemesis::client_endpoint;
use crate::network::{Endpoint, Network, Weather, name};
use crate::plan::Plan;
use crate::runtime::{Scope, SimRt, true_ns};
use crate::trace::Trace;

/// Clocks differ by up to so much, in millionths. Crystals do 100; a clock that is being slewed to the right time
/// runs up to 500 off.
const DRIFT_PPM: i64 = 250;
/// Names that clients lock.
const NAMES: [&str; 4] = ["gate", "yard", "event/rock", "event/jazz"];
/// Entries between snapshots.
const SNAPSHOT_EVERY: std::ops::Range<u64> = 15..120;

/// Everything there is.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) trace: Trace,
    pub(crate) agreement: Agreement,
    pub(crate) scribe: Scribe,
    pub(crate) names: Arc<[LockName]>,
    /// What a crash or a restart draws from.
    rng: SmallRng,
    machines: BTreeMap<Endpoint, Machine>,
    /// The lives that are on now.
    scopes: BTreeMap<Endpoint, Arc<Scope>>,
    paused: BTreeSet<Endpoint>,
    clients: BTreeMap<Endpoint, Client>,
    pub(crate) counts: Counts,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes killed.
    pub crashes: u64,
    /// Nodes stopped and resumed.
    pub pauses: u64,
    /// Clients killed.
    pub client_crashes: u64,
    /// Grants that clients were told of.
    pub grants: u64,
    /// Pieces of one lock's history that one lock can explain.
    pub searched: u64,
    /// Pieces in which too much was open to look for an explanation.
    pub passed_over: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages lost.
    pub lost_messages: u64,
    /// Writes that crashes have taken.
    pub lost_writes: u64,
    /// Entries applied, over all nodes.
    pub applied: u64,
    /// Snapshots installed, over all nodes.
    pub restored: u64,
    /// The highest term.
    pub term: u64,
}

impl World {
    /// Switches all machines on, and all clients.
    pub(crate) async fn start_all(plan: &Plan, trace: Trace) -> Self {
        let mut rng = SmallRng::seed_from_u64(plan.seed);
        let network = Network::new(rng.random(), trace.clone());
        let agreement = Agreement::new(trace.clone());
        let snapshot_every = rng.random_range(SNAPSHOT_EVERY);
        let member = |id: u64| lock_node::Member {
            id,
            peer_addr: format!("{}:8600", name(id)),
            client_addr: format!("{}:8500", name(id)),
        };
        let members: Vec<_> = (1..=plan.nodes).map(member).collect();
        let machine = |id: u64| {
            let machine = Machine {
                id,
                members: members.clone(),
                disk: Disk::new(id, rng.random(), trace.clone(), plan.plant),
                network: network.clone(),
                agreement: agreement.clone(),
                snapshot_every,
                plant: plan.plant,
            };
            (id, machine)
        };
        let machines = (1..=plan.nodes).map(machine).collect();
        let names = NAMES.map(|name| LockName::parse(name).expect("a name")).to_vec();
        let mut world = Self {
            network,
            scribe: Scribe::new(trace.clone()),
            trace,
            agreement,
            names: names.into(),
            rng,
            machines,
            scopes: BTreeMap::new(),
            paused: BTreeSet::new(),
            clients: BTreeMap::new(),
            counts: Counts::default(),
        };
        for id in 1..=plan.nodes {
            world.start(id).await;
        }
        for number in 1..=plan.clients {
            world.start_client(client_endpoint(number));
        }
        world
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(true_ns())
    }

    pub(crate) fn nodes(&self) -> u64 {
        self.machines.len() as u64
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = Endpoint> {
        self.machines.keys().copied()
    }

    /// All nodes, whether they belong to the cluster just now or not.
    pub(crate) fn members(&self) -> Vec<lock_node::Member> {
        self.machines[&1].members.clone()
    }

    /// Nodes and clients.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = Endpoint> {
        self.machines.keys().chain(self.clients.keys()).copied()
    }

    pub(crate) fn disk(&self, id: Endpoint) -> &Disk {
        &self.machines[&id].disk
    }

    /// A node that believes to lead, the one with the highest term if there are several.
    pub(crate) fn leader(&self) -> Option<Endpoint> {
        let statuses = self.statuses().into_iter();
        let leading = statuses.filter(|status| status.role == lock_node::service::Role::Leader);
        leading.max_by_key(|status| status.term).map(|status| status.id)
    }

    pub(crate) fn statuses(&self) -> Vec<NodeStatus> {
        let alive = self.scopes.keys().filter_map(|id| self.network.member(*id));
        alive.map(|member| member.service().status()).collect()
    }

    pub(crate) fn some_dead(&self, rng: &mut SmallRng) -> Option<Endpoint> {
        self.dead().choose(rng).copied()
    }

    /// Nodes that are switched off.
    pub(crate) fn dead(&self) -> Vec<Endpoint> {
        let off = |id: &&Endpoint| !self.scopes.contains_key(id);
        self.machines.keys().filter(off).copied().collect()
    }

    pub(crate) fn some_client(&self, rng: &mut SmallRng) -> Endpoint {
        let clients: Vec<_> = self.clients.keys().copied().collect();
        *clients.choose(rng).expect("there are clients")
    }

    pub(crate) async fn start(&mut self, id: Endpoint) {
        self.trace.tell(format!("{} starts", name(id)));
        let scope = Scope::new(name(id), self.drift());
        self.scopes.insert(id, scope.clone());
        self.machines[&id].start(scope).await;
    }

    pub(crate) async fn crash(&mut self, id: Endpoint) {
        let Some(scope) = self.scopes.remove(&id) else {
            return;
        };
        self.trace.tell(format!("{} crashes", name(id)));
        self.counts.crashes += 1;
        self.paused.remove(&id);
        scope.kill();
        self.network.connect(id, None);
        // The dead tasks are dropped before time goes on.
        SimRt::sleep(Duration::from_nanos(1)).await;
        assert_eq!(scope.tasks(), 0, "nothing of a dead node goes on");
        self.machines[&id].disk.crash();
    }

    pub(crate) fn pause(&mut self, id: Endpoint) {
        if let Some(scope) = self.scopes.get(&id)
            && self.paused.insert(id)
        {
            scope.pause();
            self.counts.pauses += 1;
        }
    }

    pub(crate) fn resume_all(&mut self) {
        for id in std::mem::take(&mut self.paused) {
            self.trace.tell(format!("{} goes on", name(id)));
            self.scopes[&id].resume();
        }
        self.clients.values().for_each(|client| client.set_paused(false));
    }

    pub(crate) fn disks_are_well(&self) {
        self.machines
            .values()
            .for_each(|machine| machine.disk.set_ailing(false));
    }

    pub(crate) fn snapshot(&self, id: Endpoint) {
        if let Some(member) = self.network.member(id) {
            let service = member.service().clone();
            let taking = async move { drop(service.snapshot_now().await) };
            drop(Scope::spawn(Some(member.scope().clone()), taking));
        }
    }

    /// Has the leader make way for another node. Not for itself, which nobody can ask of it: a lone node would wait for
    /// its own election for ever.
    pub(crate) fn hand_over(&self, to: Endpoint) {
        let leader = self.leader().filter(|leader| *leader != to);
        if let Some(member) = leader.and_then(|id| self.network.member(id)) {
            let raft = member.raft();
            let handing = async move { drop(raft.trigger().transfer_leader(to).await) };
            drop(Scope::spawn(Some(member.scope().clone()), handing));
        }
    }

    pub(crate) fn pause_client(&self, id: Endpoint) {
        self.clients[&id].set_paused(true);
    }

    pub(crate) fn replace_client(&mut self, id: Endpoint) {
        if let Some(client) = self.clients.remove(&id) {
            client.kill();
            self.counts.client_crashes += 1;
        }
        self.start_client(id);
    }

    fn start_client(&mut self, id: Endpoint) {
        let scope = Scope::new(name(id), self.drift());
        let client = Client::start(
            id,
            self.rng.random(),
            scope,
            self.network.clone(),
            self.machines.len() as u64,
            self.scribe.clone(),
            self.names.clone(),
        );
        self.clients.insert(id, client);
    }

    /// Everything that can be mended is.
    pub(crate) async fn heal(&mut self) {
        self.trace.tell("everything is mended");
        self.network.mend();
        self.network.set_weather(Weather::default());
        self.disks_are_well();
        self.resume_all();
        for id in self.dead() {
            self.start(id).await;
        }
    }

    pub(crate) fn stop_clients(&self) {
        self.clients.values().for_each(Client::stop);
    }

    pub(crate) fn clients_have_finished(&self) -> bool {
        self.clients.values().all(Client::has_finished)
    }

    pub(crate) fn lost_writes(&self) -> u64 {
        self.machines.values().map(|machine| machine.disk.lost()).sum()
    }

    fn drift(&mut self) -> i64 {
        self.rng.random_range(-DRIFT_PPM..=DRIFT_PPM)
    }
}
