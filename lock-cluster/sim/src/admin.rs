//! An administrator: looks who holds what, and now and then takes it away.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::client::{Asking, Scribe};
use crate::cluster::{Answer, Request};
use crate::history::What;
use crate::network::Endpoint;
use crate::runtime::{LocalInstant, Scope};
use crate::world::World;

/// Where it sits. No link to it is ever cut.
pub(crate) const ADMIN: Endpoint = 199;

const PATIENCE: Duration = Duration::from_secs(1);

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

impl World {
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
