//! One pipe to one node, shared by all calls of a client.
//!
//! A call puts its frame into a buffer and waits for an answer with its number; a task owns the connection, sends
//! whatever has come together in the buffer with one write, and hands the answers out. The task ends when the
//! connection does, or when the last handle is dropped; whoever waits then hears that there was no answer, which says
//! nothing about what became of the call.
//!
//! A node that is frozen, or behind a cable that was cut, neither answers nor hangs up. So a node that owes an answer and
//! says nothing is asked for a sign of life. If none comes by the next look the silence is told, which has the sessions
//! ask the other nodes who leads (`keep_alive`); only much later is the pipe given up, because the node takes that for a
//! client that went away, and whoever waits in line over it loses the place.
//!
//! Dropping a call tells the node. For an acquire that is what gives its place in line back.

use std::collections::HashMap;
use std::io;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use lock_pipe::frame::{FrameReader, decode, put, put_raw};
use lock_pipe::{
    Call, Done, Problem, REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, Request, Response, SILENCE_MAX, WriteDeadline,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::task::AbortOnDropHandle;

/// Room for one read, kept while the pipe is idle.
const READ_BYTES: usize = 16 << 10;
/// Bytes that wait for a connection that takes none. More callers are turned away.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How often a pipe looks whether the node still talks.
const LISTEN_EVERY: Duration = Duration::from_secs(1);
/// A node that owes answers and has said nothing for so many looks is gone. The first one asks it for a sign of life, and
/// those after it tell that none came.
const SILENT_LOOKS_MAX: u32 = 9;

/// A handle; the last one ends the pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is something to send.
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Frames that are not yet sent.
    out: BytesMut,
    /// Who waits for which answer.
    calls: HashMap<u64, oneshot::Sender<Result<Done, Problem>>>,
    last_id: u64,
    /// Why there will be no answers any more.
    closed: Option<String>,
}

impl Pipe {
    /// Puts a pipe on a connection that was upgraded. `silence` is notified as long as the node owes a sign of life.
    pub(crate) fn on(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, silence: Arc<Notify>) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Notify::new(),
        });
        // Closes also when the task is dropped, by this handle or by the end of its runtime.
        let closing = CloseOnDrop(shared.clone());
        let task = tokio::spawn(async move {
            let ended = closing.0.converse(io, &silence).await;
            closing
                .0
                .close(&ended.map_or_else(|error| error.to_string(), |()| "the node hung up".to_owned()));
        });
        Self {
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.shared.state().closed.is_none()
    }

    /// Makes a call. The outer error is that there is no answer.
    pub(crate) async fn call(&self, call: &Call) -> Result<Result<Done, Problem>, String> {
        let (answer, answered) = oneshot::channel();
        let mut waiting = Waiting {
            shared: &self.shared,
            id: self.shared.send(call, answer)?,
            answered: false,
        };
        let said = answered.await;
        waiting.answered = true;
        said.map_err(|_| {
            let closed = self.shared.state().closed.clone();
            closed.unwrap_or_else(|| "the pipe was closed".to_owned())
        })
    }
}

/// A call without an answer.
struct Waiting<'p> {
    shared: &'p Shared,
    id: u64,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.shared.cancel(self.id);
        }
    }
}

struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close("the pipe's task was stopped");
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned lock still guards good values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, call: &Call, answer: oneshot::Sender<Result<Done, Problem>>) -> Result<u64, String> {
        let mut state = self.state();
        if let Some(why) = &state.closed {
            return Err(why.clone());
        }
        if state.out.len() > WAITING_BYTES_MAX {
            return Err("it takes nothing more".to_owned());
        }
        state.last_id += 1;
        let id = state.last_id;
        let request = Request::Call {
            id,
            call: call.clone(),
        };
        put(&mut state.out, &request, REQUEST_BYTES_MAX).map_err(|error| error.to_string())?;
        state.calls.insert(id, answer);
        drop(state);
        self.wake.notify_one();
        Ok(id)
    }

    /// Nobody waits for this answer any more.
    fn cancel(&self, id: u64) {
        let mut state = self.state();
        if state.calls.remove(&id).is_none() || state.closed.is_some() {
            return;
        }
        // A few bytes always fit a frame.
        let _ = put(&mut state.out, &Request::Cancel { id }, REQUEST_BYTES_MAX);
        drop(state);
        self.wake.notify_one();
    }

    fn close(&self, why: &str) {
        let mut state = self.state();
        if state.closed.is_none() {
            state.closed = Some(why.to_owned());
            state.out = BytesMut::new();
            // Dropping the senders is what tells the callers.
            state.calls.clear();
        }
    }

    /// Sends and receives until the connection ends.
    async fn converse(&self, io: impl AsyncRead + AsyncWrite + Unpin, silence: &Notify) -> io::Result<()> {
        let (reader, mut writer) = split(io);
        let mut reader = FrameReader::new(reader).reading(READ_BYTES);
        let mut out = BytesMut::new();
        let mut deadline = WriteDeadline::default();
        let mut looks = interval_at(Instant::now() + LISTEN_EVERY, LISTEN_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Looks since the node was heard, or since it last owed nothing; and since anything was said at all.
        let (mut silent_looks, mut idle_looks) = (0, 0);
        loop {
            if out.is_empty() {
                out = take(&mut self.state().out);
            }
            let written_by = deadline.until(out.len());
            tokio::select! {
                biased;
                frame = reader.next(RESPONSE_BYTES_MAX) => {
                    (silent_looks, idle_looks) = (0, 0);
                    let Some(mut frame) = frame? else { return Ok(()) };
                    // All that has arrived is handed out before anybody who waits gets to run.
                    loop {
                        self.hear(&frame)?;
                        match reader.take(RESPONSE_BYTES_MAX)? {
                            Some(next) => frame = next,
                            None => break,
                        }
                    }
                }
                wrote = writer.write_buf(&mut out), if !out.is_empty() => match wrote? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    bytes => deadline.wrote(bytes),
                },
                () = self.wake.notified(), if out.is_empty() => {}
                () = sleep_until(written_by), if !out.is_empty() => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the node does not read"));
                }
                _ = looks.tick() => {
                    let owed = self.is_owed();
                    silent_looks = if owed { silent_looks + 1 } else { 0 };
                    idle_looks += 1;
                    if silent_looks > SILENT_LOOKS_MAX {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "the node is silent"));
                    }
                    if silent_looks > 1 {
                        silence.notify_waiters();
                    }
                    if owed || LISTEN_EVERY * idle_looks >= SILENCE_MAX / 3 {
                        put_raw(&mut out, &[], REQUEST_BYTES_MAX)?;
                    }
                }
            }
        }
    }

    fn is_owed(&self) -> bool {
        !self.state().calls.is_empty()
    }

    fn hear(&self, frame: &[u8]) -> io::Result<()> {
        if frame.is_empty() {
            return Ok(()); // a sign of life
        }
        let Response { id, answer } = decode(frame)?;
        // Unknown if its caller has gone meanwhile.
        let waiting = self.state().calls.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lock_core::SessionId;
    use lock_pipe::WRITE_DEADLINE;
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
    use tokio::time::{sleep, timeout};

    use super::*;

    const CALL: Call = Call::Close {
        session_id: SessionId::new(uuid::Uuid::nil()),
    };

    fn pipe() -> (Arc<Pipe>, FrameReader<DuplexStream>) {
        let (near, far) = duplex(1 << 10);
        (Arc::new(Pipe::on(near, Arc::default())), FrameReader::new(far))
    }

    async fn asked(node: &mut FrameReader<DuplexStream>) -> Request {
        let frame = node.expect(REQUEST_BYTES_MAX).await.unwrap();
        decode(&frame).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_is_cancelled_and_the_next_one_has_another_id() {
        let (pipe, mut node) = pipe();
        assert!(timeout(Duration::from_millis(1), pipe.call(&CALL)).await.is_err());
        let calling = tokio::spawn({
            let pipe = pipe.clone();
            async move { pipe.call(&CALL).await }
        });
        assert_eq!(asked(&mut node).await, Request::Call { id: 1, call: CALL });
        assert_eq!(asked(&mut node).await, Request::Cancel { id: 1 });
        assert_eq!(asked(&mut node).await, Request::Call { id: 2, call: CALL });
        assert!(!calling.is_finished());
        assert_eq!(pipe.shared.state().calls.len(), 1, "nothing is kept of the first");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_falls_silent_leaves_the_call_without_an_answer() {
        let (pipe, mut node) = pipe();
        let begun = Instant::now();
        let calling = pipe.call(&CALL);
        let listening = async {
            assert_eq!(asked(&mut node).await, Request::Call { id: 1, call: CALL });
            // It is asked for a sign of life, and gives none.
            let frame = node.expect(REQUEST_BYTES_MAX).await.unwrap();
            assert!(frame.is_empty());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            said = calling => assert_eq!(said, Err("the node is silent".to_owned())),
            () = listening => unreachable!(),
        }
        assert!(
            begun.elapsed() <= LISTEN_EVERY * (SILENT_LOOKS_MAX + 1),
            "{:?}",
            begun.elapsed()
        );
        assert!(!pipe.is_open());
        assert!(pipe.call(&CALL).await.is_err(), "and no other call is made");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_is_told_soon_and_not_before_a_sign_of_life_was_asked_for() {
        let (near, far) = duplex(1 << 10);
        let silence = Arc::new(Notify::new());
        let (pipe, mut node) = (Pipe::on(near, silence.clone()), FrameReader::new(far));
        let told = silence.notified();
        let begun = Instant::now();
        let listening = async {
            assert_eq!(asked(&mut node).await, Request::Call { id: 1, call: CALL });
            assert!(node.expect(REQUEST_BYTES_MAX).await.unwrap().is_empty());
            begun.elapsed()
        };
        let (asked_after, told_after) = tokio::select! {
            both = async { tokio::join!(listening, async { told.await; begun.elapsed() }) } => both,
            said = pipe.call(&CALL) => panic!("{said:?}"),
        };
        assert_eq!((asked_after, told_after), (LISTEN_EVERY, 2 * LISTEN_EVERY));
        assert!(pipe.is_open(), "it is not given up yet");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_reads_a_byte_a_second_is_given_up_in_time() {
        let (near, mut far) = duplex(1);
        let pipe = Pipe::on(near, Arc::default());
        let dawdling = async {
            while far.read_u8().await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            said = timeout(WRITE_DEADLINE + Duration::from_millis(1), pipe.call(&CALL)) => {
                assert_eq!(said.expect("in time"), Err("the node does not read".to_owned()));
            }
            () = dawdling => unreachable!(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_pipe_shows_that_it_lives_before_the_node_hangs_up() {
        let (_pipe, mut node) = pipe();
        let sign = timeout(SILENCE_MAX / 2, node.expect(REQUEST_BYTES_MAX)).await;
        assert!(sign.expect("in time").unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_had_nothing_to_say_for_long_is_not_taken_for_silent() {
        let (pipe, mut node) = pipe();
        sleep(SILENCE_MAX / 4).await;
        let calling = pipe.call(&CALL);
        let listening = async {
            assert_eq!(asked(&mut node).await, Request::Call { id: 1, call: CALL });
            sleep(LISTEN_EVERY * SILENT_LOOKS_MAX - Duration::from_millis(1)).await;
        };
        tokio::select! {
            said = calling => panic!("{said:?}"),
            () = listening => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_of_the_connection_is_no_answer() {
        let (pipe, node) = pipe();
        drop(node);
        assert!(pipe.call(&CALL).await.is_err());
    }
}
