//! One stream of appends over one connection.
//!
//! The library polls the stream of answers, and that is all that drives this: each step either takes in an answer,
//! writes what is encoded, or takes the next request from the library, whichever is possible first. Answers go before
//! writing and writing before reading ahead, so a follower that is slow to answer slows the reading down instead of
//! filling memory.
//!
//! Every branch of the `select!` may be dropped halfway without losing anything: a frame that has partly arrived stays
//! in the reader's buffer, a write that did not happen stays in `out`, a request that is not ready stays in the stream.

use std::io;

use bytes::BytesMut;
use futures::{Stream, StreamExt};
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::client::{AppendResult, Connection, broken, late, unreachable};
use super::frame::{FRAME_BYTES_MAX, decode, put};
use super::transport::WriteEnd;
use super::wire::C;
use super::{SIGN_OF_LIFE, STALL_DEADLINE};
use crate::faults::NodeFaults;

/// Requests on their way to one follower. Together with their size it bounds what a slow one costs the leader.
const WINDOW: usize = 64;
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
    /// Requests taken from `input` whose answers are to come.
    outstanding: usize,
}

/// One step of the pump.
enum Step {
    Answer(Option<bytes::Bytes>),
    Wrote,
    Request(Option<Box<AppendEntriesRequest<C>>>),
    Stalled,
    Silent,
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
            match self.step(&mut connection).await {
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
                Ok(Step::Answer(_)) => {
                    return Some(Err(broken(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "the peer hung up",
                    ))));
                }
                Ok(Step::Wrote) => {}
                Ok(Step::Request(None)) => self.input = None,
                Ok(Step::Request(Some(request))) => {
                    if let Err(error) = put(&mut self.out, &*request) {
                        return Some(Err(broken(error)));
                    }
                    self.outstanding += 1;
                }
                // An empty frame, which asks for no answer.
                Ok(Step::Silent) => self.out.extend_from_slice(&[0; 4]),
                Ok(Step::Stalled) => return Some(Err(unreachable(late("progress")))),
                Err(error) => return Some(Err(broken(error))),
            }
        }
    }

    async fn step(&mut self, connection: &mut Connection) -> io::Result<Step> {
        let Connection { reader, writer } = connection;
        let (out, flushed, outstanding) = (&mut self.out, &mut self.flushed, self.outstanding);
        let (hears, reaches) = (self.faults.hears(self.target), self.faults.reaches(self.target));
        let to_write = !out.is_empty() || !*flushed;
        let owed = outstanding > 0 || to_write;
        let more = self.input.is_some() && outstanding < WINDOW && out.len() < WRITE_AHEAD_BYTES;
        tokio::select! {
            biased;
            frame = reader.next(FRAME_BYTES_MAX), if hears => Ok(Step::Answer(frame?)),
            wrote = write(writer, out, flushed), if to_write && reaches => wrote.map(|()| Step::Wrote),
            request = next_of(&mut self.input), if more => Ok(Step::Request(request.map(Box::new))),
            () = sleep(STALL_DEADLINE), if owed => Ok(Step::Stalled),
            () = sleep(SIGN_OF_LIFE), if !owed => Ok(Step::Silent),
        }
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
    use openraft::errors::RPCError;
    use openraft::impls::{Entry, EntryPayload};
    use tokio::io::{AsyncReadExt as _, DuplexStream};

    use super::super::frame::FrameReader;
    use super::*;
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
