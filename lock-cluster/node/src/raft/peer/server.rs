//! The receiving end: the peer port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::AppendEntriesRequest;
use service_kit::{Seat, Seats};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::super::consensus::Consensus;
use super::super::ids::ClusterId;
use super::super::runtime::Tokio;
use super::super::types::{Meta, Position, Snapshot};
use super::IDLE_DEADLINE;
use super::complaints::Complaints;
use super::frame::{FRAME_BYTES_MAX, FrameReader, decode, put, send, write};
use super::handshake::{self, Caller, Me, Purpose, denied};
use super::pace::{CONNECT_DEADLINE, STALL_DEADLINE};
use super::standing::Standing;
use super::transport::{ReadEnd, Transport, WriteEnd, is_refusal};
use super::wire::{
    Answer, C, CHUNK_BYTES, Call, STATE_BYTES_MAX, SnapshotAnswer, SnapshotHeader, StandingAnswer,
};
use crate::faults::NodeFaults;

/// Connections at once. A member has three or so; who has not proved to be one stays for the handshake's deadline at
/// most, and makes room before that when all seats are taken, those who came first before the others: a member's
/// handshake takes a few round trips.
const CONNECTIONS_MAX: usize = 512;
/// Answers written with one system call.
const ANSWERS_AT_ONCE: usize = 64;

/// What every connection needs.
#[derive(Clone)]
struct Port {
    me: Me,
    standing: Arc<Standing>,
    transport: Transport,
    consensus: Consensus<Tokio>,
    faults: NodeFaults,
    complaints: Complaints,
}

/// Serves peers until `closing` falls; then hangs up on all of them.
pub(crate) async fn serve(
    listener: TcpListener,
    me: Me,
    standing: Arc<Standing>,
    transport: Transport,
    consensus: Consensus<Tokio>,
    faults: NodeFaults,
    closing: CancellationToken,
) {
    let port = Port {
        me,
        standing,
        transport,
        consensus,
        faults,
        complaints: Complaints::default(),
    };
    let seats = Seats::new(CONNECTIONS_MAX);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => match seats.take() {
                    Some(seat) => drop(connections.spawn(port.clone().connection(stream, from, seat))),
                    None => tracing::warn!(peer.addr = %from, "members have all connections of the peer port"),
                },
                Err(error) => {
                    // Out of file descriptors, mostly; trying again at once would spin.
                    tracing::warn!(%error, "cannot accept a peer");
                    sleep(std::time::Duration::from_millis(50)).await;
                }
            },
        }
    }
    connections.shutdown().await;
}

impl Port {
    async fn connection(self, stream: TcpStream, from: SocketAddr, seat: Seat) {
        match self.converse(stream, from, seat).await {
            Err(error) if is_refusal(&error) => self.complain(from, &error),
            Err(error) => tracing::debug!(peer.addr = %from, %error, "a peer's connection ended"),
            Ok(()) => {}
        }
    }

    async fn converse(&self, stream: TcpStream, from: SocketAddr, seat: Seat) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let shaking = async {
            let mut accepted = self.transport.accept(stream).await?;
            let (me, may_be) = (self.me.badge(), accepted.certified());
            let mut reader = FrameReader::new(accepted.reader);
            let shaken = handshake::accept(&mut reader, &mut accepted.writer, &me, may_be, |peer, as_of| {
                self.consensus.disk_due_from(peer, as_of)
            })
            .await?;
            io::Result::Ok((shaken, reader, accepted.writer))
        };
        let (shaken, reader, writer) = tokio::select! {
            shaken = timeout(CONNECT_DEADLINE, shaking) => shaken??,
            () = seat.lost() => return Ok(()),
        };
        seat.work();
        match shaken {
            Ok(caller) => match caller.purpose {
                Purpose::Append => {
                    // Before it has sent anything: one that looks for another disk than this node's hangs up now, and
                    // was a leader all the same.
                    self.standing.call_on();
                    self.append(from, caller, reader, writer).await
                }
                Purpose::Call => self.call(caller, reader, writer).await,
                Purpose::Snapshot => self.snapshot(caller, reader, writer).await,
            },
            Err(refusal) => {
                self.complain(from, &refusal);
                Ok(())
            }
        }
    }

    /// Who sends entries or a snapshot, or asks for a vote, speaks for a cluster, and has seen that this node's disk is the
    /// one it looks for. A node of none is of that one from now on, before it does what it was asked to.
    async fn side_with(&self, cluster: Option<ClusterId>) -> io::Result<()> {
        let cluster = cluster.ok_or_else(|| denied("it speaks for no cluster"))?;
        if self.me.identity.is_of(cluster) {
            return Ok(());
        }
        let identity = self.me.identity.clone();
        tokio::task::spawn_blocking(move || identity.join(cluster)).await?
    }

    /// The position of the committed membership, if a peer that knows the one at `last` is not in it any more.
    fn removed(&self, peer: u64, last: Option<Position>) -> Option<Position> {
        let metrics = self.consensus.raft().metrics();
        let metrics = metrics.borrow_watched();
        let committed = &metrics.committed_membership_config;
        let gone = committed.membership().get_node(&peer).is_none();
        // Who knows of none yet was never in: it is being taken in, or waits for that.
        let known = last.is_some() && *committed.log_id() > last;
        committed.log_id().filter(|_| gone && known)
    }

    /// A refused peer is worth a look, and a flood of them no flood of lines.
    fn complain(&self, from: SocketAddr, refusal: &dyn std::fmt::Display) {
        if self.complaints.is_due() {
            tracing::warn!(peer.addr = %from, %refusal, "a peer was refused");
        } else {
            tracing::debug!(peer.addr = %from, %refusal, "a peer was refused");
        }
    }

    /// Requests go to the library as they come, answers back as they are ready, in the same order.
    async fn append(
        &self,
        from: SocketAddr,
        caller: Caller,
        reader: FrameReader<ReadEnd>,
        mut writer: WriteEnd,
    ) -> io::Result<()> {
        let peer = caller.id;
        let requests =
            futures::stream::unfold((reader, self.clone()), move |(mut reader, port)| async move {
                let request = next_request(&mut reader).await?;
                if !port.faults.hears(peer) {
                    let _ = silence().await;
                    return None;
                }
                if let Err(error) = port.side_with(caller.cluster).await {
                    port.complain(from, &error);
                    return None;
                }
                port.standing.hear();
                Some((request, (reader, port)))
            });
        // Requests are read by a task of the library's, which ends with this stream or with the connection.
        let answers = self.consensus.raft().stream_append(Box::pin(requests));
        let mut answers = Box::pin(answers).ready_chunks(ANSWERS_AT_ONCE);
        let mut out = BytesMut::new();
        while let Some(ready) = answers.next().await {
            let mut last = false;
            for answer in ready {
                let answer = answer.map_err(io::Error::other)?;
                // After a refusal nothing that follows on this connection means anything.
                last |= answer.is_err();
                put(&mut out, &answer)?;
            }
            if !self.faults.reaches(peer) {
                return silence().await;
            }
            timeout(STALL_DEADLINE, write(&mut writer, &out)).await??;
            out.clear();
            if last {
                break;
            }
        }
        Ok(())
    }

    async fn call(
        &self,
        Caller {
            id: peer, cluster, ..
        }: Caller,
        mut reader: FrameReader<ReadEnd>,
        mut writer: WriteEnd,
    ) -> io::Result<()> {
        let call = timeout(CONNECT_DEADLINE, reader.expect(FRAME_BYTES_MAX)).await??;
        if !self.faults.hears(peer) {
            return silence().await;
        }
        let failed = |error: &dyn std::fmt::Display| Answer::Failed(error.to_string());
        let call = decode(&call)?;
        if !matches!(call, Call::Standing(_)) {
            self.side_with(cluster).await?;
        }
        let raft = self.consensus.raft();
        let answer = match call {
            Call::Vote(request) => raft
                .vote(request)
                .await
                .map_or_else(|error| failed(&error), Answer::Vote),
            Call::PreVote(request) => raft
                .pre_vote(request)
                .await
                .map_or_else(|error| failed(&error), Answer::Vote),
            Call::TransferLeader(request) => match raft.handle_transfer_leader(request).await {
                Ok(Ok(())) => Answer::LeaderTransferred,
                Ok(Err(error)) => failed(&error),
                Err(error) => failed(&error),
            },
            Call::Standing(last) => match raft.is_initialized().await {
                Ok(initialized) => Answer::Standing(StandingAnswer {
                    formed: initialized || self.me.identity.cluster().is_some(),
                    removed: self.removed(peer, last),
                }),
                Err(error) => failed(&error),
            },
        };
        if !self.faults.reaches(peer) {
            return silence().await;
        }
        timeout(STALL_DEADLINE, send(&mut writer, &answer)).await?
    }

    async fn snapshot(
        &self,
        Caller {
            id: peer, cluster, ..
        }: Caller,
        mut reader: FrameReader<ReadEnd>,
        mut writer: WriteEnd,
    ) -> io::Result<()> {
        if !self.faults.hears(peer) {
            return silence().await;
        }
        let header = timeout(STALL_DEADLINE, reader.expect(FRAME_BYTES_MAX)).await??;
        let header: SnapshotHeader = decode(&header)?;
        self.side_with(cluster).await?;
        let state = receive_state(&mut reader, &header).await?;
        tracing::info!(peer.id = peer, bytes = state.len(), "received a snapshot");
        let meta = Meta {
            last_log_id: header.last,
            last_membership: header.membership,
        };
        let installed = self
            .consensus
            .raft()
            .install_full_snapshot(
                header.vote,
                Snapshot {
                    meta,
                    snapshot: state,
                },
            )
            .await;
        let answer = match installed {
            Ok(response) => SnapshotAnswer::Done(response.vote),
            Err(error) => SnapshotAnswer::Failed(error.to_string()),
        };
        timeout(STALL_DEADLINE, send(&mut writer, &answer)).await?
    }
}

/// The next request on an append connection; `None` when there will be none, for whatever reason.
async fn next_request(reader: &mut FrameReader<ReadEnd>) -> Option<AppendEntriesRequest<C>> {
    loop {
        let frame = match timeout(IDLE_DEADLINE, reader.next(FRAME_BYTES_MAX)).await {
            Ok(Ok(frame)) => frame?,
            Ok(Err(error)) => {
                tracing::debug!(%error, "an append connection broke");
                return None;
            }
            Err(_) => {
                tracing::debug!("a peer has been silent for too long");
                return None;
            }
        };
        if frame.is_empty() {
            continue; // a sign of life
        }
        match decode(&frame) {
            Ok(request) => return Some(request),
            Err(error) => {
                tracing::warn!(%error, "a peer sent what is no request");
                return None;
            }
        }
    }
}

/// Puts the chunks together. Memory grows with what has arrived, not with what was announced.
async fn receive_state(reader: &mut FrameReader<ReadEnd>, header: &SnapshotHeader) -> io::Result<Bytes> {
    let refused = |why: &str| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a snapshot was refused: {why}"),
        )
    };
    if header.state_bytes > STATE_BYTES_MAX {
        return Err(refused("it is too large"));
    }
    let mut state = BytesMut::new();
    while (state.len() as u64) < header.state_bytes {
        let chunk = timeout(STALL_DEADLINE, reader.expect(CHUNK_BYTES)).await??;
        if chunk.is_empty() || (state.len() + chunk.len()) as u64 > header.state_bytes {
            return Err(refused("its chunks do not add up"));
        }
        state.extend_from_slice(&chunk);
    }
    if crc32fast::hash(&state) != header.state_crc {
        return Err(refused("its checksum is wrong"));
    }
    Ok(state.freeze())
}

/// Over a cut cable: nothing, until the other end has given up.
async fn silence() -> io::Result<()> {
    sleep(STALL_DEADLINE * 2).await;
    Ok(())
}
