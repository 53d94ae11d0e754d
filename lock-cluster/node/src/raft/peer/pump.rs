//! One stream of appends over one connection.
//!
//! The library polls the stream of answers, and that is all that drives this: each step either takes in an answer,
//! writes what is encoded, or takes the next request from the library, whichever is possible first. Answers go before
//! writing and writing before reading ahead, so a follower that is slow to answer slows the reading down instead of
//! filling memory.
//!
//! Every branch of the `select!` may be dropped halfway without losing anything: a frame that has partly arrived stays
//! in the reader's buffer, a write that did not happen stays in `out`, a request that is not ready stays in the stream.
//!
//! All deadlines share one timer, which is set anew only when it has gone off or something is due earlier: to set one
//! for every step would cost more than many a step does.

use std::io;
use std::pin::Pin;

use bytes::BytesMut;
use futures::{Stream, StreamExt};
use openraft::errors::RPCError;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, Sleep, sleep};

use super::super::commit_hold::CommitHold;
use super::super::runtime::Tokio;
use super::SIGN_OF_LIFE;
use super::client::{AppendResult, Connection, broken, late, unreachable};
use super::frame::{FRAME_BYTES_MAX, decode, put};
use super::pace::{STALL_DEADLINE, WINDOW};
use super::transport::WriteEnd;
use super::wire::C;
use crate::faults::NodeFaults;

/// Bytes encoded ahead of the socket.
const WRITE_AHEAD_BYTES: usize = 256 << 10;

/// Moves requests out and answers in, one poll of the answers' stream at a time.
pub(super) struct Pump<'s, S> {
    connection: Option<Connection>,
    /// Where the connection goes when all answers are in.
    home: &'s mut Option<Connection>,
    target: u64,
    faults: NodeFaults,
    /// `None` when the library has no more to send.
    input: Option<S>,
    out: BytesMut,
    /// Whether the socket has taken all that was written: under TLS, a write may end on this side of it.
    flushed: bool,
    /// Requests put into `out` whose answers are to come.
    outstanding: usize,
    /// What was taken from `input` and may yet turn out to be needless.
    held: CommitHold<Tokio, Instant>,
    /// When the last step was made.
    moved: Instant,
    /// Goes off at the next deadline or before.
    alarm: Pin<Box<Sleep>>,
}

/// One step of the pump.
enum Step {
    Answer(Option<bytes::Bytes>),
    Wrote,
    Request(Option<Box<AppendEntriesRequest<C>>>),
    Alarm,
}

impl<'s, S: Stream<Item = AppendEntriesRequest<C>> + Unpin> Pump<'s, S> {
    pub(super) fn new(
        input: S,
        connection: Connection,
        home: &'s mut Option<Connection>,
        target: u64,
        faults: NodeFaults,
    ) -> Self {
        Self {
            connection: Some(connection),
            home,
            target,
            faults,
            input: Some(input),
            out: BytesMut::new(),
            flushed: true,
            outstanding: 0,
            held: CommitHold::default(),
            moved: Instant::now(),
            alarm: Box::pin(sleep(STALL_DEADLINE)),
        }
    }

    /// The next answer; `None` when all are in and there is nothing more to ask.
    pub(super) async fn next(&mut self) -> Option<AppendResult> {
        let mut connection = self.connection.take()?;
        loop {
            if self.input.is_none() && self.outstanding == 0 && self.out.is_empty() && self.flushed {
                *self.home = Some(connection);
                return None;
            }
            // Whatever goes wrong ends the stream, and the connection with it: what was on its way is lost, and the
            // library goes on from the last answer it got.
            let step = self.step(&mut connection).await;
            if !matches!(step, Ok(Step::Alarm)) {
                self.moved = Instant::now();
            }
            let done = match step {
                Ok(Step::Answer(Some(frame))) if self.outstanding > 0 => {
                    self.outstanding -= 1;
                    return match decode::<StreamAppendResult<C>>(&frame) {
                        Ok(Ok(matching)) => {
                            self.connection = Some(connection);
                            Some(Ok(Ok(matching)))
                        }
                        // A conflict or a higher vote: the peer has stopped reading.
                        Ok(Err(refused)) => Some(Ok(Err(refused))),
                        Err(error) => Some(Err(broken(error))),
                    };
                }
                Ok(Step::Answer(_)) => Err(broken(io::Error::new(
                    io::ErrorKind::ConnectionAborted,
                    "the peer hung up",
                ))),
                Ok(Step::Wrote) => Ok(()),
                Ok(Step::Request(Some(request))) => {
                    let ready = self.held.pass(self.moved, *request);
                    self.put(ready)
                }
                Ok(Step::Request(None)) => {
                    self.input = None;
                    let held = self.held.release();
                    self.put(held)
                }
                Ok(Step::Alarm) => self.do_what_is_due(),
                Err(error) => Err(broken(error)),
            };
            if let Err(error) = done {
                return Some(Err(error));
            }
        }
    }

    async fn step(&mut self, connection: &mut Connection) -> io::Result<Step> {
        let due = self.due();
        if due < self.alarm.deadline() || self.alarm.is_elapsed() {
            self.alarm.as_mut().reset(due);
        }
        let Connection { reader, writer } = connection;
        let (out, flushed) = (&mut self.out, &mut self.flushed);
        let (hears, reaches) = (self.faults.hears(self.target), self.faults.reaches(self.target));
        let to_write = !out.is_empty() || !*flushed;
        let more = self.input.is_some() && self.outstanding < WINDOW && out.len() < WRITE_AHEAD_BYTES;
        tokio::select! {
            biased;
            frame = reader.next(FRAME_BYTES_MAX), if hears => Ok(Step::Answer(frame?)),
            wrote = write(writer, out, flushed), if to_write && reaches => wrote.map(|()| Step::Wrote),
            request = next_of(&mut self.input), if more => Ok(Step::Request(request.map(Box::new))),
            () = self.alarm.as_mut() => Ok(Step::Alarm),
        }
    }

    fn put(
        &mut self,
        requests: impl IntoIterator<Item = AppendEntriesRequest<C>>,
    ) -> Result<(), RPCError<C>> {
        for request in requests {
            put(&mut self.out, &request).map_err(broken)?;
            self.outstanding += 1;
        }
        Ok(())
    }

    fn is_owed(&self) -> bool {
        self.outstanding > 0 || !self.out.is_empty() || !self.flushed
    }

    /// Until when there must be another step: progress where something is owed, a sign of life where nothing is.
    fn moves_by(&self) -> Instant {
        self.moved
            + if self.is_owed() {
                STALL_DEADLINE
            } else {
                SIGN_OF_LIFE
            }
    }

    fn due(&self) -> Instant {
        let moves_by = self.moves_by();
        self.held.due().map_or(moves_by, |due| due.min(moves_by))
    }

    /// The alarm went off, perhaps for something that has been done meanwhile.
    fn do_what_is_due(&mut self) -> Result<(), RPCError<C>> {
        let now = Instant::now();
        if self.held.due().is_some_and(|due| due <= now) {
            let held = self.held.release();
            return self.put(held);
        }
        if self.moves_by() > now {
            return Ok(());
        }
        if self.is_owed() {
            return Err(unreachable(late("progress")));
        }
        // An empty frame, which asks for no answer.
        self.out.extend_from_slice(&[0; 4]);
        self.moved = now;
        Ok(())
    }
}

/// Hands the socket what it takes of `out`. Dropped halfway, it leaves in `out` and `flushed` what is still to be done.
async fn write(writer: &mut WriteEnd, out: &mut BytesMut, flushed: &mut bool) -> io::Result<()> {
    if !out.is_empty() {
        *flushed = false;
        if writer.write_buf(out).await? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    writer.flush().await?;
    *flushed = true;
    Ok(())
}

async fn next_of<S: Stream + Unpin>(input: &mut Option<S>) -> Option<S::Item> {
    input.as_mut()?.next().await
}

#[cfg(test)]
pub(super) mod tests {
    use openraft::impls::{Entry, EntryPayload};
    use tokio::io::{AsyncReadExt as _, DuplexStream};

    use std::time::Duration;

    use super::super::frame::FrameReader;
    use super::*;
    use crate::raft::COMMIT_HELD;
    use crate::raft::types::{Batch, BatchContent, CommittedLeaderId, Position, Vote};

    pub(in super::super) fn request(bytes: usize) -> AppendEntriesRequest<C> {
        let batch = Batch::encode(&BatchContent {
            at: lock_core::ClusterTime::ZERO,
            by: 1,
            commands: vec![lock_core::Command::Expire; bytes],
        });
        AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: None,
            entries: vec![Entry {
                log_id: Position {
                    leader_id: CommittedLeaderId::new(1),
                    index: 1,
                },
                payload: EntryPayload::Normal(batch),
            }],
            leader_commit: None,
        }
    }

    /// How many of endlessly many requests are taken before a peer is given up.
    async fn taken_until_given_up(near: DuplexStream, bytes: usize) -> usize {
        let (reader, writer) = tokio::io::split(near);
        let connection = Connection {
            reader: FrameReader::new(Box::new(reader)),
            writer: Box::new(writer),
        };
        let request = request(bytes);
        let mut taken = 0;
        let endless = futures::stream::repeat_with(|| {
            taken += 1;
            request.clone()
        });
        let mut home = None;
        let mut pump = Pump::new(endless, connection, &mut home, 2, NodeFaults::new(false, &[]));
        let answer = tokio::time::timeout(10 * STALL_DEADLINE, pump.next()).await;
        let answer = answer.expect("the peer is given up");
        assert!(
            matches!(answer, Some(Err(RPCError::Unreachable(_)))),
            "{answer:?}"
        );
        drop(pump);
        assert!(home.is_none(), "a stalled connection is not used again");
        taken
    }

    /// When each of these requests arrives, if nothing but `then` follows them, and whether it has entries.
    async fn arrivals(
        requests: Vec<AppendEntriesRequest<C>>,
        then: impl Stream<Item = AppendEntriesRequest<C>> + Unpin,
    ) -> Vec<(Duration, bool)> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(near);
        let connection = Connection {
            reader: FrameReader::new(Box::new(reader)),
            writer: Box::new(writer),
        };
        let input = futures::stream::iter(requests).chain(then);
        let mut home = None;
        let mut pump = Pump::new(input, connection, &mut home, 2, NodeFaults::new(false, &[]));
        let mut arrived = Vec::new();
        let begun = Instant::now();
        let reading = async {
            let mut far = FrameReader::new(far);
            while let Ok(Some(frame)) = tokio::time::timeout(STALL_DEADLINE / 2, far.next(FRAME_BYTES_MAX))
                .await
                .unwrap_or(Ok(None))
            {
                let request: AppendEntriesRequest<C> = decode(&frame).unwrap();
                arrived.push((begun.elapsed(), !request.entries.is_empty()));
            }
        };
        tokio::select! {
            answer = pump.next() => panic!("{answer:?}"),
            () = reading => {}
        }
        arrived
    }

    fn bare_commit() -> AppendEntriesRequest<C> {
        AppendEntriesRequest {
            entries: Vec::new(),
            ..request(1)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bare_commit_is_left_out_if_entries_follow_and_sent_soon_if_none_do() {
        let pending = futures::stream::pending;
        let requests = vec![bare_commit(), request(1)];
        assert_eq!(arrivals(requests, pending()).await, [(Duration::ZERO, true)]);

        let alone = arrivals(vec![bare_commit()], pending()).await;
        let [(after, false)] = alone[..] else {
            panic!("{alone:?}")
        };
        // Timers count whole milliseconds.
        let soon = COMMIT_HELD..=COMMIT_HELD + Duration::from_millis(1);
        assert!(soon.contains(&after), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_is_a_stream_of_its_own_and_leaves_at_once() {
        let beat = arrivals(vec![bare_commit()], futures::stream::empty()).await;
        assert_eq!(beat, [(Duration::ZERO, false)]);
    }

    #[tokio::test]
    async fn a_peer_that_stops_reading_costs_a_few_hundred_kilobytes_and_is_given_up() {
        const SOCKET_BYTES: usize = 64 << 10;
        const REQUEST_BYTES: usize = 50 << 10;
        let (near, far) = tokio::io::duplex(SOCKET_BYTES);
        let taken = taken_until_given_up(near, REQUEST_BYTES).await;
        let most = WRITE_AHEAD_BYTES + SOCKET_BYTES + 2 * REQUEST_BYTES;
        assert!(taken * REQUEST_BYTES <= most, "{taken} requests were taken");
        drop(far);
    }

    #[tokio::test]
    async fn a_peer_that_reads_and_never_answers_is_sent_a_window_full_and_given_up() {
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let reading = tokio::spawn(async move {
            let mut swallowed = vec![0; 64 << 10];
            while far.read(&mut swallowed).await.is_ok_and(|bytes| bytes > 0) {}
        });
        assert_eq!(taken_until_given_up(near, 100).await, WINDOW);
        reading.await.unwrap();
    }
}
