//! The leader's batch: from many waiting commands to one log entry.
//!
//! Durable consensus costs one fsync on a majority and a round trip, whether an entry holds one command or a
//! thousand. So commands queue here, and whenever there is room the batcher takes all that wait (up to 1,024) and
//! proposes them as one entry. No timer holds up what somebody waits for: an idle cluster commits a lone command at
//! once, a busy one finds its company already there.
//!
//! **Everybody who is ready joins first.** Before it takes what waits, the batcher lets the node's other tasks run a few
//! turns ([`TURNS`]): calls that have arrived on a socket but were not looked at yet become part of this entry instead
//! of the next. That costs an idle node microseconds and saves a busy one a third of its entries: what an entry costs
//! (three nodes' flushes, messages and wake-ups) is much of what a lock costs.
//!
//! **Keep-alives wait for company**, up to [`COMPANY`]. Nobody is held up by one, and they are what a quiet cluster
//! mostly does: five thousand sessions renew fifteen hundred times a second, evenly spread, and each alone in an entry
//! of its own would be a write, a flush and two messages on every node. Any other command takes them along at once.
//!
//! **So does whoever will have to stand in line**, for a much shorter time ([`COMPANY_IN_LINE`]). On a contended lock
//! a release wakes the next holder, and brings its last one back to the end of the line: its acquire grants nothing, and
//! would be every third entry. It rides with the next release, which is on its way. What it is behind does not change:
//! the queue keeps its order.
//!
//! **Two batches are in flight.** With one, everybody who arrives during an fsync waits for it and then for their
//! own: a contended hand-over costs a quarter more. With four nothing is gained, and the batches get smaller.
//!
//! Entries are handed to Raft by this one task, in order, so commands are ordered as they came: a keep-alive that
//! arrived before an `Expire` wins, an `Abandon` follows its `Acquire`.
//!
//! The queue is bounded. Beyond [`QUEUE_MAX`] callers are told that the node is overloaded, at once; a small
//! reserve is kept for what a node owes on its own account: giving up what a vanished client asked for.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{ClusterTime, Command, Reply};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tracing::Instrument as _;
use tracing::field::Empty;

use super::{ClusterClock, ServiceError};
use crate::faults::{AfterCommit, NodeFaults};
use crate::raft::{Batch, BatchContent, Consensus, ServiceRt};

/// Commands of one entry.
const BATCH_COMMANDS_MAX: usize = 1_024;
/// Bytes of one entry, about. It bounds the peers' frames, and how long one entry holds up the next.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// How long a batch of nothing but keep-alives waits for more. A small part of the shortest time to live (500 ms), of
/// which a client leaves two thirds to its keep-alive.
const COMPANY: Duration = Duration::from_millis(50);
/// The same for an acquire that cannot be granted yet. Longer than a hand-over takes, so that the next one takes it along;
/// too short to be felt by somebody who stands in line.
const COMPANY_IN_LINE: Duration = Duration::from_millis(2);
/// How often the runtime goes round before an entry is closed. One turn reads what has arrived and one lets the calls in
/// it reach the queue; the others are for those who were just answered and ask again. With eight instead of three, 256
/// clients cost an eighth less processor time; sixteen bring nothing more.
const TURNS: usize = 8;
/// Entries proposed and not yet answered.
const IN_FLIGHT: usize = 2;
/// Commands that callers may have waiting.
pub(super) const QUEUE_MAX: usize = 8_192;
/// Room beyond that for the node's own commands.
const RESERVE: usize = 4_096;
/// How long an entry may take before its commands' outcome is called unknown. Longer than an election.
const COMMIT_DEADLINE: Duration = Duration::from_secs(5);

type Answer = Result<Reply, ServiceError>;

struct Proposal {
    command: Command,
    /// `None`: nobody waits for the reply.
    answer: Option<oneshot::Sender<Answer>>,
    /// How long it may wait for company.
    patience: Duration,
}

impl Proposal {
    fn new(command: Command, answer: Option<oneshot::Sender<Answer>>) -> Self {
        let patience = match command {
            Command::KeepAlive { .. } => COMPANY,
            _ => Duration::ZERO,
        };
        Self {
            command,
            answer,
            patience,
        }
    }
}

/// The way into the batch.
pub(super) struct Queue {
    sender: mpsc::Sender<Proposal>,
    /// Something was put in line that cannot wait as long as a keep-alive.
    urgent: Arc<Notify>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Puts a caller's command in line.
    pub(super) fn ask(&self, command: Command) -> Result<oneshot::Receiver<Answer>, ServiceError> {
        self.check_room()?;
        self.ask_from_reserve(command)
    }

    /// The same for an acquire that will stand in line, as things are.
    pub(super) fn ask_in_line(&self, acquire: Command) -> Result<oneshot::Receiver<Answer>, ServiceError> {
        self.check_room()?;
        let (answer, answered) = oneshot::channel();
        self.put(Proposal {
            patience: COMPANY_IN_LINE,
            ..Proposal::new(acquire, Some(answer))
        })?;
        Ok(answered)
    }

    fn check_room(&self) -> Result<(), ServiceError> {
        if self.sender.capacity() <= RESERVE && !self.sender.is_closed() {
            return Err(ServiceError::Overloaded);
        }
        Ok(())
    }

    /// The same for a command that overload must not hold up, because it is what makes room: `Expire`.
    pub(super) fn ask_from_reserve(
        &self,
        command: Command,
    ) -> Result<oneshot::Receiver<Answer>, ServiceError> {
        let (answer, answered) = oneshot::channel();
        self.put(Proposal::new(command, Some(answer)))?;
        Ok(answered)
    }

    /// Puts a command of the node itself in line, without waiting for anything: this is called from `drop`. Should
    /// there be no room even in the reserve, the session's time to live does the work.
    pub(super) fn tell(&self, command: Command) {
        if let Err(error) = self.put(Proposal::new(command, None)) {
            tracing::warn!(%error, "could not give up an abandoned acquisition, its session's end will");
        }
    }

    fn put(&self, proposal: Proposal) -> Result<(), ServiceError> {
        let patience = proposal.patience;
        self.sender.try_send(proposal).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ServiceError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => ServiceError::ShuttingDown,
        })?;
        if patience < COMPANY {
            self.urgent.notify_waiters();
        }
        Ok(())
    }
}

/// The task's side.
pub(super) struct Batcher<R: ServiceRt> {
    queue: mpsc::Receiver<Proposal>,
    urgent: Arc<Notify>,
    consensus: Consensus<R>,
    clock: Arc<ClusterClock<R>>,
    faults: NodeFaults,
}

impl<R: ServiceRt> Batcher<R> {
    pub(super) fn new(
        consensus: Consensus<R>,
        clock: Arc<ClusterClock<R>>,
        faults: NodeFaults,
    ) -> (Queue, Self) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX + RESERVE);
        let urgent = Arc::new(Notify::new());
        (
            Queue {
                sender,
                urgent: urgent.clone(),
            },
            Self {
                queue,
                urgent,
                consensus,
                clock,
                faults,
            },
        )
    }

    /// Runs until `stop` resolves. Whoever still waits then learns that the node shuts down.
    pub(super) async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        let in_flight = Arc::new(Semaphore::new(IN_FLIGHT));
        let mut stop = std::pin::pin!(stop);
        let mut gathered = Gathered::default();
        loop {
            let step = async {
                let slot = in_flight.clone().acquire_owned().await.ok()?;
                gathered.add(self.queue.recv().await?);
                self.gather(&mut gathered).await;
                Some(slot)
            };
            let Some(slot) = first_of::<R, _, _>(step, stop.as_mut()).await else {
                break;
            };
            let Gathered {
                commands, answers, ..
            } = std::mem::take(&mut gathered);
            let span = tracing::debug_span!("proposal", commands = commands.len(), raft.log_index = Empty);
            let submitted = self.submit(commands).await;
            let (consensus, faults) = (self.consensus.clone(), self.faults.clone());
            let conclude = async move {
                let outcome = match submitted {
                    Ok(pending) => R::timeout(COMMIT_DEADLINE, consensus.outcome(pending))
                        .await
                        .unwrap_or(Err(ServiceError::Unknown)),
                    Err(error) => Err(error),
                };
                drop(slot);
                answer(after_commit::<R>(&faults, outcome).await, answers);
            };
            drop(R::spawn(conclude.instrument(span)));
        }
        answer(Err(ServiceError::ShuttingDown), gathered.answers);
        self.queue.close();
        while let Ok(proposal) = self.queue.try_recv() {
            answer(Err(ServiceError::ShuttingDown), vec![proposal.answer]);
        }
    }

    /// Takes what waits, as much as one entry may hold; as long as all of it can wait, also what comes meanwhile.
    async fn gather(&mut self, gathered: &mut Gathered) {
        for _ in 0..TURNS {
            R::let_others_run().await;
        }
        let began = R::now();
        let urgent = self.urgent.clone();
        loop {
            let mut urgent = std::pin::pin!(urgent.notified());
            // Listening must begin before looking, or what comes in between would be slept through.
            urgent.as_mut().enable();
            self.take_what_waits(gathered);
            let patience = gathered.patience.saturating_sub(R::since(began));
            if patience.is_zero() || !gathered.has_room() {
                return;
            }
            R::select2(urgent, R::sleep(patience)).await;
        }
    }

    fn take_what_waits(&mut self, gathered: &mut Gathered) {
        while gathered.has_room() {
            let Ok(next) = self.queue.try_recv() else { break };
            gathered.add(next);
        }
    }

    async fn submit(&self, commands: Vec<Command>) -> Result<crate::raft::Pending<R>, ServiceError> {
        let term = self.consensus.leading()?;
        let at = self.clock.now(term).unwrap_or(ClusterTime::ZERO);
        let batch = Batch::encode(&BatchContent {
            at,
            by: self.consensus.id(),
            commands,
        });
        self.consensus.submit(term, batch).await
    }
}

/// What becomes one entry.
struct Gathered {
    commands: Vec<Command>,
    answers: Vec<Option<oneshot::Sender<Answer>>>,
    bytes: usize,
    /// How long the least patient of them may wait.
    patience: Duration,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            answers: Vec::new(),
            bytes: 0,
            patience: Duration::MAX,
        }
    }
}

impl Gathered {
    fn has_room(&self) -> bool {
        self.commands.len() < BATCH_COMMANDS_MAX && self.bytes < BATCH_BYTES_MAX
    }

    fn add(&mut self, proposal: Proposal) {
        self.patience = self.patience.min(proposal.patience);
        self.bytes += weight(&proposal.command);
        self.commands.push(proposal.command);
        self.answers.push(proposal.answer);
    }
}

/// The fault point `lock.after-commit`.
async fn after_commit<R: ServiceRt>(
    faults: &NodeFaults,
    outcome: Result<Vec<Reply>, ServiceError>,
) -> Result<Vec<Reply>, ServiceError> {
    match faults.after_commit() {
        None => outcome,
        Some(AfterCommit::Delay(delay)) => {
            R::sleep(delay).await;
            outcome
        }
        Some(AfterCommit::DropReply) => outcome.and(Err(ServiceError::Unknown)),
    }
}

/// Gives everybody their own reply, or all of them the same error.
fn answer(outcome: Result<Vec<Reply>, ServiceError>, answers: Vec<Option<oneshot::Sender<Answer>>>) {
    match outcome {
        Ok(replies) => {
            assert_eq!(
                replies.len(),
                answers.len(),
                "apply replies to every command of an entry"
            );
            for (answer, reply) in answers.into_iter().zip(replies) {
                if let Some(answer) = answer {
                    let _ = answer.send(Ok(reply));
                }
            }
        }
        Err(error) => {
            for answer in answers.into_iter().flatten() {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}

/// Roughly the encoded size of a command.
fn weight(command: &Command) -> usize {
    const FIXED: usize = 48;
    FIXED
        + match command {
            Command::Acquire { names, .. } => names.iter().map(|name| name.as_str().len() + 2).sum(),
            Command::OpenSession { label, .. } => label.as_str().len(),
            Command::Break { name, .. } => name.as_str().len(),
            Command::KeepAlive { .. }
            | Command::CloseSession { .. }
            | Command::Abandon { .. }
            | Command::Release { .. }
            | Command::RaiseTokenFloor { .. }
            | Command::Expire => 0,
        }
}

/// `work`'s result, or `None` as soon as `stop` resolves.
async fn first_of<R: ServiceRt, T, S: Future<Output = ()> + Send>(
    work: impl Future<Output = Option<T>> + Send,
    stop: S,
) -> Option<T>
where
    T: Send,
{
    match R::select2(stop, work).await {
        crate::raft::Select2::First(()) => None,
        crate::raft::Select2::Second(result) => result,
    }
}
