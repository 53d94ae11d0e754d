//! An administrator: looks who holds what, now and then takes it away, and changes who belongs to the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lock_node::LockService;
use lock_node::service::ServiceError;
use openraft::AsyncRuntime;
use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use crate::client::{Asking, Scribe};
use crate::cluster::{Answer, Request};
use crate::network::{Endpoint, name};
use crate::runtime::{LocalInstant, Scope, SimRt};
use crate::world::World;
use lock_history::What;

/// Where it sits. No link to it is ever cut.
pub(crate) const ADMIN: Endpoint = 199;

/// A cluster of fewer cannot lose any.
const VOTERS_MIN: usize = 3;
/// A change may meet a leader that is just leaving.
const RESTORE_TRIES: usize = 50;

const PATIENCE: Duration = Duration::from_secs(1);

fn voters(service: &LockService<SimRt>) -> BTreeSet<Endpoint> {
    let members = service.status().members.into_iter();
    members
        .filter(|member| member.voter)
        .map(|member| member.id)
        .collect()
}

/// One look at one name, written into the history. `None` if nobody answered.
pub(crate) async fn look(
    asking: &Asking,
    scribe: &Scribe,
    number: u64,
    lock: lock_core::LockName,
) -> Option<u64> {
    scribe.note(ADMIN, What::Looks(number, lock.clone()));
    let mut tries = 0..3;
    let enough = std::sync::Mutex::new(&mut tries);
    let asked = asking
        .until(&Request::Look(lock), PATIENCE, || {
            enough.lock().is_ok_and(|mut tries| tries.next().is_none())
        })
        .await;
    let (_, Answer::Seen(seen)): (LocalInstant, _) = asked? else {
        unreachable!("a look is answered with what is seen");
    };
    let token = seen
        .and_then(|lock| lock.holder)
        .map(|holder| holder.fencing_token.get());
    scribe.note(ADMIN, What::Saw(number, token));
    token
}

/// What it takes to have exactly `voters`: those who are new learn the log first.
pub(crate) async fn make_members(
    service: &LockService<SimRt>,
    all: &[lock_node::Member],
    voters: BTreeSet<Endpoint>,
) -> Result<(), ServiceError> {
    let known: BTreeSet<Endpoint> = service.status().members.iter().map(|member| member.id).collect();
    for member in all {
        if voters.contains(&member.id) && !known.contains(&member.id) {
            service.add_learner(member.clone()).await?;
        }
    }
    service.change_members(voters).await
}

impl World {
    /// In the background, too: removes a voter, or takes one in. Three at least stay.
    pub(crate) fn change_members(&mut self, rng: &mut SmallRng) {
        let Some(leader) = self.leader().and_then(|id| self.network.member(id)) else {
            return;
        };
        let service = leader.service().clone();
        let mut voters = voters(&service);
        let outside: Vec<Endpoint> = self.ids().filter(|id| !voters.contains(id)).collect();
        if voters.len() > VOTERS_MIN && rng.random_bool(0.5) {
            let inside: Vec<Endpoint> = voters.iter().copied().collect();
            voters.remove(inside.choose(rng).expect("there are voters"));
        } else if let Some(new) = outside.choose(rng) {
            voters.insert(*new);
        } else {
            return;
        }
        self.trace.tell(format!("the voters shall be {voters:?}"));
        let all = self.members();
        let changing = async move { drop(make_members(&service, &all, voters).await) };
        drop(Scope::spawn(Some(leader.scope().clone()), changing));
    }

    /// Makes all nodes voters again. Done when somebody says so: until then a change that was begun before may still
    /// come through, or have stopped half-way with its leader.
    pub(crate) async fn restore_members(&self) -> bool {
        let all = self.members();
        let everybody: BTreeSet<Endpoint> = self.ids().collect();
        for _ in 0..RESTORE_TRIES {
            if let Some(leader) = self.leader().and_then(|id| self.network.member(id)) {
                let service = leader.service().clone();
                let (all, wanted) = (all.clone(), everybody.clone());
                let changing = async move { make_members(&service, &all, wanted).await };
                let changed = Scope::spawn(Some(leader.scope().clone()), changing).await;
                self.trace.tell(format!(
                    "{} was asked to take everybody in: {changed:?}; its members: {:?}",
                    name(leader.id()),
                    leader
                        .service()
                        .status()
                        .members
                        .iter()
                        .map(|m| (m.id, m.voter))
                        .collect::<Vec<_>>()
                ));
                if matches!(changed, Ok(Ok(()))) && voters(leader.service()) == everybody {
                    return true;
                }
            }
            SimRt::sleep(Duration::from_millis(200)).await;
        }
        false
    }

    /// In the background: a cluster in trouble does not answer.
    pub(crate) fn break_some_lock(&mut self, rng: &mut SmallRng) {
        let lock = self.names[rng.random_range(0..self.names.len())].clone();
        let number = rng.random();
        let scribe = self.scribe.clone();
        let asking = Arc::new(Asking::new(
            self.network.clone(),
            ADMIN,
            self.nodes(),
            rng.random(),
        ));
        let breaks = rng.random_bool(0.5);
        let working = async move {
            let seen = look(&asking, &scribe, number, lock.clone()).await;
            if let Some(token) = seen.filter(|_| breaks) {
                scribe.note(ADMIN, What::Breaks(token));
                let request = Request::Break(lock, lock_core::FencingToken::new(token));
                let once = std::sync::atomic::AtomicBool::new(false);
                let enough = || once.swap(true, std::sync::atomic::Ordering::Relaxed);
                asking.until(&request, PATIENCE, enough).await;
            }
        };
        drop(Scope::spawn(Some(Scope::new("admin", 0)), working));
    }
}
