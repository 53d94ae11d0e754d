//! A stream of appends to another member, as the real links keep one: requests follow each other without waiting for
//! answers, nothing overtakes anything, and one lost message is the end of the connection, which shows in silence.

use std::time::Duration;

use futures::{Stream, StreamExt};
use lock_node::raft::pace::{CONNECT_DEADLINE, RECONNECT_PAUSE, STALL_DEADLINE, WINDOW};
use lock_node::raft::{Cfg, CommitHold, ServiceRt as _};
use openraft::errors::{RPCError, Unreachable};
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use openraft::{AnyError, AsyncRuntime};
use openraft_rt::Select4;
use tokio::sync::mpsc;

use super::Member;
use crate::network::{Endpoint, Network, Step};
use crate::runtime::{Scope, SimRt, true_ns};

type C = Cfg<SimRt>;
pub(super) type AppendResult = Result<StreamAppendResult<C>, RPCError<C>>;

/// Something on its way, and when it arrives.
type Due<T> = (u64, T);

/// The sender's end.
pub(super) struct AppendStream<S> {
    /// `None` when the library has no more to send.
    input: Option<S>,
    network: Network,
    way: (Endpoint, Endpoint),
    /// `None` when a request was lost.
    up: Option<OrderedSender<AppendEntriesRequest<C>>>,
    down: mpsc::UnboundedReceiver<Due<StreamAppendResult<C>>>,
    /// The next answer, before it has arrived.
    arriving: Option<Due<StreamAppendResult<C>>>,
    outstanding: usize,
    /// What was taken from `input` and may yet turn out to be needless.
    held: CommitHold<SimRt, <SimRt as AsyncRuntime>::Instant>,
    over: bool,
}

enum Progress {
    Answer(StreamAppendResult<C>),
    Request(Option<Box<AppendEntriesRequest<C>>>),
    /// What is held has waited long enough.
    HeldLong,
    Broken,
}

impl<S> AppendStream<S>
where
    S: Stream<Item = AppendEntriesRequest<C>> + Unpin + Send,
{
    pub(super) async fn connect(
        network: Network,
        way: (Endpoint, Endpoint),
        input: S,
    ) -> Result<Self, RPCError<C>> {
        let (up, uplink) = mpsc::unbounded_channel();
        let (downlink, down) = mpsc::unbounded_channel();
        let ends = std::sync::Mutex::new(Some((uplink, downlink)));
        let net = network.clone();
        let accept = move |member: &Member| -> futures::future::BoxFuture<'static, ()> {
            // A doubled handshake opens one connection all the same.
            let ends = ends.lock().ok().and_then(|mut ends| ends.take());
            if let Some((uplink, downlink)) = ends {
                let answers = OrderedSender::new(downlink, net.clone(), (way.1, way.0), Step::Answer);
                let serving = serve(member.raft(), uplink, answers);
                drop(Scope::spawn(Some(member.scope().clone()), serving));
            }
            Box::pin(async {})
        };
        let connecting = network.call(way, "connect", accept);
        if SimRt::timeout(CONNECT_DEADLINE, connecting).await.is_err() {
            SimRt::sleep(RECONNECT_PAUSE).await;
            return Err(unreachable("no connection"));
        }
        Ok(Self {
            input: Some(input),
            up: Some(OrderedSender::new(up, network.clone(), way, Step::Call)),
            network,
            way,
            down,
            arriving: None,
            outstanding: 0,
            held: CommitHold::default(),
            over: false,
        })
    }

    /// The next answer; `None` when all are in and there is nothing more to ask, or after an error.
    pub(super) async fn next(&mut self) -> Option<AppendResult> {
        if self.over {
            return None;
        }
        loop {
            if self.input.is_none() && self.outstanding == 0 {
                self.over = true;
                return None;
            }
            match self.progress().await {
                Progress::Answer(answer) => {
                    self.outstanding -= 1;
                    self.over = answer.is_err();
                    return Some(Ok(answer));
                }
                Progress::Request(None) => {
                    self.input = None;
                    let held = self.held.release();
                    self.send(held);
                }
                Progress::Request(Some(request)) => {
                    let ready = self.held.pass(SimRt::now(), *request);
                    self.send(ready);
                }
                Progress::HeldLong => {
                    let held = self.held.release();
                    self.send(held);
                }
                Progress::Broken => {
                    self.over = true;
                    return Some(Err(unreachable("the connection broke")));
                }
            }
        }
    }

    fn send(&mut self, requests: impl IntoIterator<Item = AppendEntriesRequest<C>>) {
        for request in requests {
            self.outstanding += 1;
            if !self.up.as_mut().is_some_and(|up| up.send(request)) {
                self.up = None;
            }
        }
    }

    /// Answers before requests, as in the real links.
    async fn progress(&mut self) -> Progress {
        let Self {
            input,
            network,
            way,
            down,
            arriving,
            outstanding,
            held,
            ..
        } = self;
        let answer = arrival(down, arriving);
        let more = *outstanding < WINDOW;
        let request = async {
            match input {
                Some(input) if more => input.next().await.map(Box::new),
                _ => std::future::pending().await,
            }
        };
        let owed = *outstanding > 0;
        let stalled = async {
            match owed {
                true => SimRt::sleep(STALL_DEADLINE).await,
                false => std::future::pending().await,
            }
        };
        let held_long = async {
            match held.due() {
                Some(due) => SimRt::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        match SimRt::select4(answer, request, held_long, stalled).await {
            Select4::First(Some(answer)) => Progress::Answer(answer),
            // The other end is gone. If its machine still has a kernel it says so; else there is silence.
            Select4::First(None) => {
                let says_so = network.flip() && network.hop((way.1, way.0), "append", Step::HangUp).is_some();
                if !says_so {
                    SimRt::sleep(STALL_DEADLINE).await;
                }
                Progress::Broken
            }
            Select4::Second(request) => Progress::Request(request),
            Select4::Third(()) => Progress::HeldLong,
            Select4::Fourth(()) => Progress::Broken,
        }
    }
}

/// The receiver's end: requests go to the library as they come, answers back in the same order.
async fn serve(
    raft: openraft::Raft<C, lock_node::raft::StateMachine<SimRt>>,
    uplink: mpsc::UnboundedReceiver<Due<AppendEntriesRequest<C>>>,
    mut answers: OrderedSender<StreamAppendResult<C>>,
) {
    let requests = futures::stream::unfold((uplink, None), |(mut uplink, mut arriving)| async move {
        let request = arrival(&mut uplink, &mut arriving).await?;
        Some((request, (uplink, arriving)))
    });
    let mut results = Box::pin(raft.stream_append(Box::pin(requests)));
    while let Some(Ok(answer)) = results.next().await {
        let last = answer.is_err();
        if !answers.send(answer) || last {
            break;
        }
    }
}

/// Waits until the next message is there. May be dropped and asked again: what is on its way stays.
async fn arrival<T>(from: &mut mpsc::UnboundedReceiver<Due<T>>, arriving: &mut Option<Due<T>>) -> Option<T> {
    if arriving.is_none() {
        *arriving = Some(from.recv().await?);
    }
    let due = arriving.as_ref().map_or(0, |(due, _)| *due);
    let left = due.saturating_sub(true_ns());
    if left > 0 {
        SimRt::sleep(Duration::from_nanos(left)).await;
    }
    arriving.take().map(|(_, message)| message)
}

/// One direction of a connection.
struct OrderedSender<T> {
    to: mpsc::UnboundedSender<Due<T>>,
    network: Network,
    way: (Endpoint, Endpoint),
    step: Step,
    /// When the last message arrives: none is there before it.
    last_due: u64,
}

impl<T> OrderedSender<T> {
    fn new(
        to: mpsc::UnboundedSender<Due<T>>,
        network: Network,
        way: (Endpoint, Endpoint),
        step: Step,
    ) -> Self {
        Self {
            to,
            network,
            way,
            step,
            last_due: 0,
        }
    }

    /// False if it was lost, and with it whatever would follow.
    fn send(&mut self, message: T) -> bool {
        let Some(delay) = self.network.hop(self.way, "append", self.step) else {
            return false;
        };
        let delay = u64::try_from(delay.as_nanos()).expect("a message is not on its way for centuries");
        self.last_due = self.last_due.max(true_ns() + delay);
        self.to.send((self.last_due, message)).is_ok()
    }
}

fn unreachable(what: &str) -> RPCError<C> {
    RPCError::Unreachable(Unreachable::new(&AnyError::error(what)))
}
