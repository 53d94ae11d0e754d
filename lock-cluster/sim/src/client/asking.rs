//! How a client gets an answer: from whoever leads, again and again, with the same ids.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_node::ServiceRt;
use lock_node::service::ServiceError;
use openraft::AsyncRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::cluster::{Answer, Request};
use crate::network::{Endpoint, Network};
use crate::runtime::{LocalInstant, SimRt};

/// From one failed try to the next, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 10..120;

/// One client's way to the cluster.
pub struct Asking {
    network: Network,
    me: Endpoint,
    nodes: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Who led when it was last heard of.
    leader: Endpoint,
    rng: SmallRng,
}

impl Asking {
    /// A client that knows all nodes and no leader.
    pub fn new(network: Network, me: Endpoint, nodes: u64, seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let leader = rng.random_range(1..=nodes);
        Self {
            network,
            me,
            nodes,
            inner: Mutex::new(Inner { leader, rng }),
        }
    }

    /// Asks until there is an answer, or `enough`. Each try is waited for `patience`, then hung up on. The moment
    /// returned with the answer is from before the try that was answered.
    pub async fn until(
        &self,
        request: &Request,
        patience: Duration,
        enough: impl Fn() -> bool,
    ) -> Option<(LocalInstant, Answer)> {
        while !enough() {
            let sent = SimRt::now();
            let leader = self.inner().leader;
            let asked = request.clone();
            let call = self
                .network
                .call((self.me, leader), kind(request), move |member| {
                    member.serve(asked.clone())
                });
            let answered = SimRt::timeout(patience, call).await;
            let pause = {
                let mut inner = self.inner();
                inner.leader = match answered {
                    Ok(Ok(answer)) => return Some((sent, answer)),
                    Ok(Err(ServiceError::NotLeader { leader: elsewhere })) if elsewhere.id != leader => {
                        elsewhere.id
                    }
                    // The next one, as the real client does.
                    Ok(Err(_)) | Err(_) => leader % self.nodes + 1,
                };
                inner.rng.random_range(PAUSE_MS)
            };
            SimRt::sleep(Duration::from_millis(pause)).await;
        }
        None
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind(request: &Request) -> &'static str {
    match request {
        Request::Open(..) => "open",
        Request::KeepAlive(..) => "keep-alive",
        Request::Close(..) => "close",
        Request::Acquire(..) => "acquire",
        Request::Release(..) => "release",
        Request::Look(..) => "look",
        Request::Break(..) => "break",
    }
}
