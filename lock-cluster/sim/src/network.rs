//! The network between members, and between clients and members.
//!
//! A message is lost, late, or delivered twice, as the dice say, and always lost where the way is cut; ways are cut
//! in one direction. Loss looks like silence: nobody is told. A caller that stops waiting hangs up, and that, too, is
//! a message: it arrives behind the call, late or never, and makes the receiver drop what it was doing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use openraft::AsyncRuntime;
use openraft_rt::Select2;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::oneshot;

use crate::cluster::Member;
use crate::runtime::{Scope, SimRt};
use crate::trace::Trace;

/// Who sends and receives: members by their ids, clients from 101 on.
pub type Endpoint = u64;

/// How long a message is on its way, how long a slow one, and how long one of ten slow ones: it was lost a few times
/// and sent again, which on a network that loses packets takes seconds.
const HOP_US: Range<u64> = 200..2_000;
const SLOW_HOP_US: Range<u64> = 20_000..400_000;
const RESENT_HOP_US: Range<u64> = 400_000..5_000_000;

/// The network; clones are the same one.
#[derive(Clone)]
pub struct Network(Arc<Mutex<Inner>>);

struct Inner {
    rng: SmallRng,
    trace: Trace,
    members: BTreeMap<Endpoint, Arc<Member>>,
    cut: BTreeSet<(Endpoint, Endpoint)>,
    weather: Weather,
    streams: bool,
    messages: u64,
    lost: u64,
}

/// How bad it is, in messages of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Lost on the way.
    pub lost: u32,
    /// Delivered twice.
    pub doubled: u32,
    /// Hundreds of times later than usual.
    pub slow: u32,
}

/// What a message is about, for the trace.
pub type Kind = &'static str;

type Handler<T> = BoxFuture<'static, T>;

impl Network {
    /// A network on which all is well and nobody is connected.
    pub fn new(seed: u64, trace: Trace) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        Self(Arc::new(Mutex::new(Inner {
            streams: rng.random_bool(0.5),
            rng,
            trace,
            members: BTreeMap::new(),
            cut: BTreeSet::new(),
            weather: Weather::default(),
            messages: 0,
            lost: 0,
        })))
    }

    /// From now on messages to `id` reach this life of it; `None`: nobody is there.
    pub fn connect(&self, id: Endpoint, member: Option<Arc<Member>>) {
        let mut inner = self.inner();
        match member {
            Some(member) => inner.members.insert(id, member),
            None => inner.members.remove(&id),
        };
    }

    /// The current life of a member.
    pub fn member(&self, id: Endpoint) -> Option<Arc<Member>> {
        self.inner().members.get(&id).cloned()
    }

    /// Cuts the way from one to another; the way back stays.
    pub fn cut(&self, from: Endpoint, to: Endpoint) {
        self.inner().cut.insert((from, to));
    }

    /// Mends all ways.
    pub fn mend(&self) {
        self.inner().cut.clear();
    }

    /// Sets how bad it is.
    pub fn set_weather(&self, weather: Weather) {
        self.inner().weather = weather;
    }

    /// Whether members keep streams open to each other, as real ones do, or send single requests that can overtake
    /// each other. The dice have decided for the whole run.
    pub fn has_streams(&self) -> bool {
        self.inner().streams
    }

    /// Messages sent, and how many of them were lost.
    pub fn messages(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.messages, inner.lost)
    }

    /// Has `serve` run at the member and brings back what it returns; waits for ever if anything is lost on the way.
    /// Dropping the future hangs up.
    pub async fn call<T: Send + 'static>(
        &self,
        (from, to): (Endpoint, Endpoint),
        kind: Kind,
        serve: impl Fn(&Member) -> Handler<T> + Send + 'static,
    ) -> T {
        let (reply, replied) = oneshot::channel();
        let (_dropped_to_hang_up, hung_up) = oneshot::channel();
        let call = Call {
            network: self.clone(),
            way: (from, to),
            kind,
        };
        drop(Scope::spawn(None, call.carry(serve, reply, hung_up)));
        match replied.await {
            Ok(value) => value,
            Err(_) => std::future::pending().await,
        }
    }

    /// Rolls a pair of dice: true half of the time.
    pub(crate) fn flip(&self) -> bool {
        self.inner().rng.random_bool(0.5)
    }

    /// Rolls the dice for one message: how long it takes, or `None` if it never arrives.
    pub(crate) fn hop(&self, (from, to): (Endpoint, Endpoint), kind: Kind, step: Step) -> Option<Duration> {
        let mut inner = self.inner();
        inner.messages += 1;
        let Weather { lost, slow, .. } = inner.weather;
        let lost = inner.rng.random_range(0..1_000) < lost || inner.cut.contains(&(from, to));
        let range = match (
            inner.rng.random_range(0..1_000) < slow,
            inner.rng.random_range(0..10),
        ) {
            (false, _) => HOP_US,
            (true, 0) => RESENT_HOP_US,
            (true, _) => SLOW_HOP_US,
        };
        let us = inner.rng.random_range(range);
        inner.lost += u64::from(lost);
        let fate = if lost { 0 } else { us };
        inner
            .trace
            .note(&[from, to, step as u64, kind.len() as u64, fate], || match lost {
                true => format!("{} > {} {kind} {step:?}: lost", name(from), name(to)),
                false => format!("{} > {} {kind} {step:?}", name(from), name(to)),
            });
        (!lost).then(|| Duration::from_micros(us))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Call = 1,
    Answer,
    HangUp,
}

/// A call on its way. Carried by the world: it goes on when its sender is dead.
struct Call {
    network: Network,
    way: (Endpoint, Endpoint),
    kind: Kind,
}

impl Call {
    async fn carry<T: Send + 'static>(
        self,
        serve: impl Fn(&Member) -> Handler<T> + Send + 'static,
        reply: oneshot::Sender<T>,
        hung_up: oneshot::Receiver<()>,
    ) {
        let Some(delay) = self.network.hop(self.way, self.kind, Step::Call) else {
            return;
        };
        SimRt::sleep(delay).await;
        let (member, twice) = {
            let mut inner = self.network.inner();
            let twice = inner.rng.random_range(0..1_000) < inner.weather.doubled;
            (inner.members.get(&self.way.1).cloned(), twice)
        };
        let Some(member) = member.filter(|member| member.scope().is_alive()) else {
            return;
        };
        if twice {
            // Served like the other, answered to nobody.
            let handler = serve(&member);
            drop(Scope::spawn(Some(member.scope().clone()), async move {
                drop(handler.await)
            }));
        }
        let (cancel, cancelled) = oneshot::channel();
        let handler = serve(&member);
        let answer = Call {
            network: self.network.clone(),
            way: (self.way.1, self.way.0),
            kind: self.kind,
        };
        let serving = async move {
            if let Select2::Second(value) = SimRt::select2(told(cancelled), handler).await {
                drop(Scope::spawn(None, answer.bring_back(value, reply)));
            }
        };
        drop(Scope::spawn(Some(member.scope().clone()), serving));
        // Nothing is ever sent over it: it ends when the caller has its answer, or does not want it any more.
        let _ = hung_up.await;
        if let Some(delay) = self.network.hop(self.way, self.kind, Step::HangUp) {
            SimRt::sleep(delay).await;
            let _ = cancel.send(());
        }
    }

    async fn bring_back<T>(self, value: T, reply: oneshot::Sender<T>) {
        if let Some(delay) = self.network.hop(self.way, self.kind, Step::Answer) {
            SimRt::sleep(delay).await;
            let _ = reply.send(value);
        }
    }
}

async fn told(signal: oneshot::Receiver<()>) {
    if signal.await.is_err() {
        std::future::pending().await
    }
}

/// How an endpoint is called in traces.
pub fn name(endpoint: Endpoint) -> String {
    match endpoint {
        0..=100 => format!("n{endpoint}"),
        client => format!("c{}", client - 100),
    }
}
