//! One pipe, from its first frame to its last.
//!
//! One task does all of it: it takes requests in, polls the calls that are under way, and writes what was answered.
//! Answers go first, then writing, then reading, so that whatever is decided at the same time leaves in one write,
//! and a client that does not read is not read from either. Nothing here can grow: calls under way and bytes not yet
//! written have a limit, what waits to be written has a deadline, and so has a client's silence.
//!
//! When the task ends, for whatever reason, the calls under way are dropped with it. Dropping an acquire is what gives
//! it up, as everywhere in the service.

use std::collections::HashMap;
use std::io;
use std::mem::take;
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures::future::{AbortHandle, AbortRegistration, Abortable, Aborted};
use futures::stream::{FuturesUnordered, StreamExt as _};
use lock_pipe::frame::{FrameReader, decode, put, put_raw};
use lock_pipe::{
    Answer, Call, Done, Leader, Problem, REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, Request, Response,
    SILENCE_MAX, WriteDeadline,
};
use service_kit::Seat;
use service_kit::problem::Problem as HttpProblem;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval_at, sleep, sleep_until};

use super::super::Api;
use super::super::lasting::Shared;
use super::metrics::Kind;

/// Calls of one pipe under way; one more is told to come back. As many as may stand in line for one name.
const CALLS_MAX: usize = 4_096;
/// As many again of those that do not wait: however many acquires a client has waiting, it can keep its sessions alive
/// and release what it holds.
const CALLS_AND_RESERVE_MAX: usize = 2 * CALLS_MAX;
/// Bytes waiting to be written from which on nothing more is taken in.
const OUT_BYTES_MAX: usize = 256 << 10;
/// Room for one read, kept while a pipe is idle.
const READ_BYTES: usize = 8 << 10;
/// How long the last answers may take to leave when the node stops.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves a connection that was upgraded, of which `read` came with the upgrade.
pub(super) async fn serve(api: Api, seat: &Seat, stream: TcpStream, read: &[u8]) {
    let _open = api.pipes.metrics.opened();
    let (reader, writer) = stream.into_split();
    let reader = FrameReader::new(reader).after(read).reading(READ_BYTES);
    let share = Shared::default();
    let ask = |call| answer(&api, &share, call);
    let busy = |busy: bool| if busy { seat.work() } else { seat.rest() };
    let cut = async {
        api.closing.cancelled().await;
        sleep(LAST_WORDS).await;
    };
    let ended = tokio::select! {
        ended = converse(reader, writer, api.closing.cancelled(), busy, ask) => ended,
        () = seat.lost() => Err(io::Error::other("its place was given to a newcomer")),
        () = cut => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a pipe was closed");
    }
}

/// Does what a call asks for, and counts it.
pub(in crate::http) async fn answer(api: &Api, share: &Shared, call: Call) -> Answer {
    let (kind, began) = (Kind::of(&call), Instant::now());
    let answer = carry_out(api, share, call)
        .await
        .map_err(|problem| words(&problem));
    api.pipes.metrics.answered(kind, &answer, began.elapsed());
    answer
}

/// While an acquire is under way the pipe has its share of the connections that may wait.
async fn carry_out(api: &Api, share: &Shared, call: Call) -> Result<Done, HttpProblem> {
    let _lasting = match call {
        Call::Acquire { .. } => Some(share.wait(&api.lasting)?),
        _ => None,
    };
    api.carry_out(call).await
}

/// Takes requests and gives answers, until the client ends it, does not keep to the rules, or `closing` resolves and
/// every call was answered. `busy` hears when there begin to be calls under way, and when there are none any more.
async fn converse<A: Future<Output = Answer>>(
    mut reader: FrameReader<impl AsyncRead + Unpin>,
    mut writer: impl AsyncWrite + Unpin,
    closing: impl Future<Output = ()>,
    busy: impl Fn(bool),
    ask: impl Fn(Call) -> A,
) -> io::Result<()> {
    let mut was_busy = false;
    let mut out = BytesMut::new();
    let mut deadline = WriteDeadline::default();
    let mut calls = FuturesUnordered::new();
    let mut cancels: HashMap<u64, AbortHandle> = HashMap::new();
    let mut closing = pin!(closing);
    let mut open = true;
    let mut heard = true;
    let mut silence = interval_at(tokio::time::Instant::now() + SILENCE_MAX, SILENCE_MAX);
    while open || !calls.is_empty() || !out.is_empty() {
        let room = out.len() < OUT_BYTES_MAX;
        if was_busy == calls.is_empty() {
            was_busy = !was_busy;
            busy(was_busy);
        }
        let written_by = deadline.until(out.len());
        tokio::select! {
            biased;
            Some((id, answered)) = calls.next(), if room => {
                cancels.remove(&id);
                if let Ok(answer) = answered {
                    put(&mut out, &Response { id, answer }, RESPONSE_BYTES_MAX)?;
                }
            }
            wrote = writer.write_buf(&mut out), if !out.is_empty() => match wrote? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => deadline.wrote(bytes),
            },
            frame = reader.next(REQUEST_BYTES_MAX), if room && open => {
                heard = true;
                match frame?.as_deref() {
                    None => return Ok(()),
                    Some([]) => put_raw(&mut out, &[], RESPONSE_BYTES_MAX)?,
                    Some(frame) => match decode(frame)? {
                        Request::Cancel { id } => {
                            if let Some(cancel) = cancels.get(&id) {
                                cancel.abort();
                            }
                        }
                        Request::Call { id, call } if calls.len() >= most_before(&call) => {
                            let answer = Err(overloaded());
                            put(&mut out, &Response { id, answer }, RESPONSE_BYTES_MAX)?;
                        }
                        Request::Call { id, call } => {
                            let (cancel, cancelled) = AbortHandle::new_pair();
                            if cancels.insert(id, cancel).is_some() {
                                return Err(io::Error::new(io::ErrorKind::InvalidData, "a call's id is in use"));
                            }
                            calls.push(under_way(id, call, &ask, cancelled));
                        }
                    },
                }
            }
            // The service has stopped before: every call under way is being answered, and no other is taken.
            () = &mut closing, if open => open = false,
            () = sleep_until(written_by), if !out.is_empty() => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"));
            }
            _ = silence.tick() => {
                if !take(&mut heard) {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the client is silent"));
                }
            }
        }
    }
    Ok(())
}

/// How many calls may be under way for this one to be taken on.
fn most_before(call: &Call) -> usize {
    match call {
        Call::Acquire { .. } => CALLS_MAX,
        _ => CALLS_AND_RESERVE_MAX,
    }
}

/// One call. Only an acquire heeds its cancellation: nothing else waits for long, and what was proposed happens anyway.
async fn under_way<A: Future<Output = Answer>>(
    id: u64,
    call: Call,
    ask: &impl Fn(Call) -> A,
    cancelled: AbortRegistration,
) -> (u64, Result<Answer, Aborted>) {
    let answered = match call {
        Call::Acquire { .. } => Abortable::new(ask(call), cancelled).await,
        _ => Ok(ask(call).await),
    };
    (id, answered)
}

/// The problem as a pipe tells it.
fn words(problem: &HttpProblem) -> Problem {
    Problem {
        status: problem.status.as_u16(),
        slug: problem.slug.clone().into_owned(),
        detail: problem.detail.clone().unwrap_or_default(),
        leader: problem.member::<Leader>("leader"),
    }
}

fn overloaded() -> Problem {
    words(
        &HttpProblem::busy("overloaded", Duration::from_secs(1))
            .detail("too many calls of this pipe are under way; nothing was done for this one"),
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{pending, ready};
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use lock_core::{AcquireId, LockNames, SessionId, WaitMs};
    use lock_pipe::WRITE_DEADLINE;
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex, empty, sink};
    use tokio::time::timeout;

    use super::*;

    const CALL: Call = Call::Close {
        session_id: SessionId::new(uuid::Uuid::nil()),
    };

    fn acquire() -> Call {
        Call::Acquire {
            session_id: SessionId::new(uuid::Uuid::nil()),
            acquire_id: AcquireId::new(1),
            names: LockNames::parse(&["gate"]).unwrap(),
            wait: WaitMs::ZERO,
        }
    }

    fn requests(requests: &[Request]) -> FrameReader<impl AsyncRead + Unpin> {
        let mut frames = BytesMut::new();
        for request in requests {
            put(&mut frames, request, REQUEST_BYTES_MAX).unwrap();
        }
        // What follows the frames never comes.
        let (far, near) = duplex(1);
        std::mem::forget(far);
        FrameReader::new(near).after(&frames)
    }

    async fn done(_: Call) -> Answer {
        Ok(Done::Closed)
    }

    fn idle(_: bool) {}

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_hung_up_on_and_one_that_shows_a_sign_of_life_is_not() {
        let ended = timeout(
            2 * SILENCE_MAX,
            converse(requests(&[]), sink(), pending(), idle, done),
        )
        .await;
        assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);

        let (mut client, node) = duplex(64);
        let (reader, writer) = tokio::io::split(node);
        let living = async {
            for _ in 0..10 {
                sleep(SILENCE_MAX - Duration::from_secs(1)).await;
                client.write_all(&[0; 4]).await.unwrap();
                let mut sign = [1; 4];
                client.read_exact(&mut sign).await.unwrap();
                assert_eq!(sign, [0; 4], "it is answered in kind");
            }
        };
        tokio::select! {
            ended = converse(FrameReader::new(reader), writer, pending(), idle, done) => panic!("{ended:?}"),
            () = living => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_or_a_byte_a_second_is_hung_up_on_in_time() {
        for reads in [false, true] {
            let (mut client, writer): (DuplexStream, DuplexStream) = duplex(1);
            let dawdling = tokio::spawn(async move {
                while !reads || client.read_u8().await.is_ok() {
                    sleep(Duration::from_secs(1)).await;
                }
            });
            let asked: Vec<Request> = (0..50).map(|id| Request::Call { id, call: CALL }).collect();
            let conversing = converse(requests(&asked), writer, pending(), idle, done);
            let ended = timeout(WRITE_DEADLINE + Duration::from_millis(1), conversing).await;
            let ended = ended.expect("in time").unwrap_err();
            assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
            dawdling.abort();
        }
    }

    /// Notes how much each write took.
    struct Writes<'w>(&'w RefCell<Vec<usize>>);

    impl AsyncWrite for Writes<'_> {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.0.borrow_mut().push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_decided_together_leaves_in_one_write() {
        let asked: Vec<Request> = (0..50).map(|id| Request::Call { id, call: CALL }).collect();
        let writes = RefCell::default();
        let decided = tokio::sync::Semaphore::new(0);
        let ask = async |_: Call| {
            let _ = decided.acquire().await;
            Ok(Done::Closed)
        };
        let deciding = async {
            sleep(Duration::from_millis(1)).await;
            decided.close();
            sleep(Duration::from_millis(1)).await;
        };
        tokio::select! {
            ended = converse(requests(&asked), Writes(&writes), pending(), idle, ask) => panic!("{ended:?}"),
            () = deciding => {}
        }
        assert_eq!(writes.into_inner(), [50 * 7]);
    }

    #[tokio::test]
    async fn a_pipe_is_busy_from_its_first_call_to_its_last_answer() {
        let asked = [1, 2].map(|id| Request::Call { id, call: CALL });
        let heard = RefCell::new(Vec::new());
        let busy = |busy| heard.borrow_mut().push(busy);
        let ask = async |_: Call| {
            tokio::task::yield_now().await;
            Ok(Done::Closed)
        };
        converse(requests(&asked), sink(), ready(()), busy, ask)
            .await
            .unwrap();
        assert_eq!(heard.into_inner(), [true, false]);
    }

    #[tokio::test]
    async fn a_pipe_that_closes_answers_what_is_under_way() {
        let asked = [Request::Call { id: 1, call: CALL }];
        let ended = converse(requests(&asked), sink(), ready(()), idle, async |_| {
            tokio::task::yield_now().await;
            Ok(Done::Closed)
        });
        ended.await.unwrap();
        let cancelled = [
            Request::Call {
                id: 1,
                call: acquire(),
            },
            Request::Cancel { id: 1 },
        ];
        // Never answered, but cancelled: or this would not end.
        converse(requests(&cancelled), sink(), ready(()), idle, |_| pending())
            .await
            .unwrap();
        converse(FrameReader::new(empty()), sink(), pending(), idle, done)
            .await
            .unwrap();
    }
}
