//! The sending end: what the library calls to reach another member.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::{Stream, StreamExt};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, OptionalSend};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::super::ids::DiskId;
use super::super::types::{PeerNode, Position, Snapshot, Vote};
use super::absence::Absences;
use super::complaints::Complaints;
use super::frame::{FRAME_BYTES_MAX, FrameReader, decode, put, put_raw, send, write};
use super::handshake::{self, Me, Purpose};
use super::pace::{CONNECT_DEADLINE, RECONNECT_PAUSE, STALL_DEADLINE};
use super::pump::Pump;
use super::refusal::has_lost_its_disk;
use super::standing::Standing;
use super::transport::{ReadEnd, Transport, WriteEnd, is_refusal};
use super::wire::{Answer, C, CHUNK_BYTES, Call, SnapshotAnswer, SnapshotHeader, StandingAnswer};
use crate::faults::NodeFaults;

pub(super) type AppendResult = Result<StreamAppendResult<C>, RPCError<C>>;

/// Makes the links to the other members.
#[derive(Clone)]
pub(crate) struct PeerNetwork {
    me: Me,
    standing: Arc<Standing>,
    transport: Transport,
    faults: NodeFaults,
    complaints: Complaints,
    absences: Absences,
    /// Addresses as this node was told at its start; they win over those in the log.
    told: Arc<BTreeMap<u64, PeerNode>>,
}

impl PeerNetwork {
    pub(crate) fn new(
        me: Me,
        standing: Arc<Standing>,
        transport: Transport,
        faults: NodeFaults,
        told: BTreeMap<u64, PeerNode>,
    ) -> Self {
        Self {
            me,
            standing,
            transport,
            faults,
            complaints: Complaints::default(),
            absences: Absences::default(),
            told: Arc::new(told),
        }
    }

    pub(super) fn me(&self) -> &Me {
        &self.me
    }

    /// A link to a member.
    pub(super) fn link(&self, target: u64, node: &PeerNode) -> PeerLink {
        let addr = self.told.get(&target).unwrap_or(node).peer_addr.clone();
        self.link_to(target, addr, node.disk)
    }

    fn link_to(&self, target: u64, addr: String, recorded: Option<DiskId>) -> PeerLink {
        PeerLink {
            network: self.clone(),
            target,
            addr,
            recorded,
            idle: None,
            connecting: None,
        }
    }
}

impl RaftNetworkFactory<C> for PeerNetwork {
    type Network = PeerLink;

    async fn new_client(&mut self, target: u64, node: &PeerNode) -> PeerLink {
        if node.disk.is_none() {
            // It was taken in just now. What it showed before is no disk to record: it may have been removed in between,
            // and come back under its id on another.
            self.standing.forget(target);
        }
        self.link(target, node)
    }
}

/// One user's link to one member: the library makes several, for entries, heartbeats, votes and snapshots.
pub(crate) struct PeerLink {
    network: PeerNetwork,
    target: u64,
    addr: String,
    /// The disk that the log recorded for it when the link was made.
    recorded: Option<DiskId>,
    /// An append connection on which all answers are in. Heartbeats come ten times a second and each is a stream
    /// of its own for the library; they should not each pay for a handshake.
    idle: Option<Connection>,
    /// An append connection that is being made.
    connecting: Option<AbortOnDropHandle<io::Result<Connection>>>,
}

/// An authenticated connection.
pub(super) struct Connection {
    pub(super) reader: FrameReader<ReadEnd>,
    pub(super) writer: WriteEnd,
}

impl PeerLink {
    async fn connect(&self, purpose: Purpose) -> io::Result<Connection> {
        let connecting = async {
            let stream = TcpStream::connect(&self.addr).await?;
            stream.set_nodelay(true)?;
            let (reader, mut writer) = self.network.transport.open(stream, self.target).await?;
            let mut reader = FrameReader::new(reader);
            let (me, to) = (self.network.me.badge(), self.target);
            let mut recorded = self.network.standing.recorded(to);
            recorded.disk = recorded.disk.or(self.recorded);
            let disk = handshake::open(&mut reader, &mut writer, &me, to, recorded, purpose).await?;
            self.network.standing.see(to, disk);
            Ok(Connection { reader, writer })
        };
        let connected = timeout(CONNECT_DEADLINE, connecting)
            .await
            .unwrap_or_else(|_| Err(late("connecting")));
        match &connected {
            Ok(_) if self.network.absences.is_over(self.target) => {
                tracing::info!(peer.id = self.target, peer.addr = %self.addr, "a member answers again");
            }
            Ok(_) => {}
            Err(error) => self.complain(error),
        }
        connected
    }

    fn complain(&self, error: &io::Error) {
        let network = &self.network;
        let is_news = if has_lost_its_disk(error) {
            network.standing.expel(error.to_string());
            false
        } else if is_refusal(error) {
            network.complaints.is_due()
        } else {
            network.absences.is_news(self.target)
        };
        if is_news {
            tracing::warn!(peer.id = self.target, peer.addr = %self.addr, %error, "no connection to a member");
        } else {
            tracing::debug!(peer.id = self.target, peer.addr = %self.addr, %error, "no connection to a member");
        }
    }

    /// An append connection. It is made by a task of its own, which goes on when the library gives up waiting for it: its
    /// patience is one heartbeat's, and on a busy machine or over a long line a handshake takes longer.
    async fn connected(&mut self) -> io::Result<Connection> {
        let connecting = match self.connecting.take() {
            Some(begun) => begun,
            None => {
                let link = self
                    .network
                    .link_to(self.target, self.addr.clone(), self.recorded);
                let connecting = async move { link.connect(Purpose::Append).await };
                AbortOnDropHandle::new(tokio::spawn(connecting))
            }
        };
        // Kept in the link while it is waited for: this future may be dropped.
        let connected = self.connecting.insert(connecting).await;
        self.connecting = None;
        connected.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
    }

    /// One question on a connection of its own.
    async fn call(&self, call: Call, patience: Duration) -> Result<Answer, RPCError<C>> {
        let asking = async {
            self.pass_faults().await;
            let mut connection = self.connect(Purpose::Call).await.map_err(unreachable)?;
            let answer = async {
                send(&mut connection.writer, &call).await?;
                decode(&connection.reader.expect(FRAME_BYTES_MAX).await?)
            };
            answer.await.map_err(broken)
        };
        timeout(patience, asking)
            .await
            .unwrap_or_else(|_| Err(unreachable(late("an answer"))))
    }

    /// Asks the member where this node stands; it shows its disk by the way.
    pub(super) async fn ask_standing(
        &mut self,
        last: Option<Position>,
    ) -> Result<(DiskId, StandingAnswer), RPCError<C>> {
        let answer = match self.call(Call::Standing(last), CONNECT_DEADLINE).await? {
            Answer::Standing(answer) => answer,
            other => return Err(unexpected(other)),
        };
        let disk = self.network.standing.seen().get(&self.target).copied();
        let unseen = || broken(io::Error::other("no disk was shown"));
        Ok((disk.ok_or_else(unseen)?, answer))
    }

    async fn vote_call(&self, call: Call, option: &RPCOption) -> Result<VoteResponse<C>, RPCError<C>> {
        match self.call(call, option.soft_ttl()).await? {
            Answer::Vote(response) => Ok(response),
            other => Err(unexpected(other)),
        }
    }

    /// Over a cut cable there is silence, until the caller has waited long enough.
    async fn pass_faults(&self) {
        if !self.network.faults.reaches(self.target) || !self.network.faults.hears(self.target) {
            std::future::pending::<()>().await;
        }
    }
}

impl RaftNetworkV2<C> for PeerLink {
    type SnapshotData = bytes::Bytes;

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, AppendResult>, RPCError<C>>>
    where
        S: Stream<Item = AppendEntriesRequest<C>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            let connection = match self.idle.take() {
                Some(connection) => connection,
                None => {
                    match self.connected().await {
                        Ok(connection) => connection,
                        Err(error) => {
                            // The library's own backoff is drawn with the next request from `input`, which is not
                            // read before there is a connection: without this pause, a member that is down is
                            // asked thousands of times a second.
                            sleep(RECONNECT_PAUSE).await;
                            return Err(unreachable(error));
                        }
                    }
                }
            };
            let faults = self.network.faults.clone();
            let pump = Pump::new(input, connection, &mut self.idle, self.target, faults);
            let answers = futures::stream::unfold(pump, |mut pump| async move {
                let answer = pump.next().await?;
                Some((answer, pump))
            });
            Ok(Box::pin(answers) as BoxStream<'s, _>)
        })
    }

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<C>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<C>, RPCError<C>> {
        let mut answers = self.stream_append(futures::stream::iter([rpc]), option).await?;
        match answers.next().await {
            Some(answer) => Ok(match answer? {
                Ok(matching) => AppendEntriesResponse::PartialSuccess(matching),
                Err(StreamAppendError::Conflict(_)) => AppendEntriesResponse::Conflict,
                Err(StreamAppendError::HigherVote(vote)) => AppendEntriesResponse::HigherVote(vote),
            }),
            None => Err(broken(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    async fn vote(&mut self, rpc: VoteRequest<C>, option: RPCOption) -> Result<VoteResponse<C>, RPCError<C>> {
        self.vote_call(Call::Vote(rpc), &option).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<C>,
        option: RPCOption,
    ) -> Result<VoteResponse<C>, RPCError<C>> {
        self.vote_call(Call::PreVote(rpc), &option).await
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<C>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<C>, RPCError<C>> {
        match self.call(Call::TransferLeader(req), option.soft_ttl()).await? {
            Answer::LeaderTransferred => Ok(Ok(())),
            other => Err(unexpected(other)),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<C>, StreamingError<C>> {
        tokio::select! {
            closed = cancel => Err(StreamingError::Closed(closed)),
            () = sleep(option.soft_ttl()) => Err(StreamingError::Unreachable(Unreachable::new(&late("a snapshot's transfer")))),
            sent = self.send_snapshot(vote, snapshot) => match sent {
                Ok(SnapshotAnswer::Done(vote)) => Ok(SnapshotResponse::new(vote)),
                Ok(SnapshotAnswer::Failed(why)) => Err(StreamingError::Unreachable(Unreachable::new(&AnyError::error(why)))),
                Err(error) => Err(StreamingError::Unreachable(Unreachable::new(&error))),
            },
        }
    }
}

impl PeerLink {
    async fn send_snapshot(&self, vote: Vote, snapshot: Snapshot) -> io::Result<SnapshotAnswer> {
        self.pass_faults().await;
        let Connection {
            mut reader,
            mut writer,
        } = self.connect(Purpose::Snapshot).await?;
        let Snapshot {
            meta,
            snapshot: state,
        } = snapshot;
        tracing::info!(
            peer.id = self.target,
            bytes = state.len(),
            "sending a snapshot to a member"
        );
        let header = SnapshotHeader {
            vote,
            last: meta.last_log_id,
            membership: meta.last_membership,
            state_bytes: state.len() as u64,
            state_crc: crc32fast::hash(&state),
        };
        let mut out = BytesMut::new();
        put(&mut out, &header)?;
        for chunk in state.chunks(CHUNK_BYTES) {
            put_raw(&mut out, chunk)?;
            // A deadline for each chunk instead of one for all: a big state over a slow link may take its time.
            timeout(STALL_DEADLINE, write(&mut writer, &out))
                .await
                .map_err(|_| late("taking a chunk"))??;
            out.clear();
        }
        write(&mut writer, &out).await?;
        decode(&reader.expect(FRAME_BYTES_MAX).await?)
    }
}

pub(super) fn late(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what} took too long"))
}

/// The library waits a while before it tries again.
pub(super) fn unreachable(error: io::Error) -> RPCError<C> {
    RPCError::Unreachable(Unreachable::new(&error))
}

/// The library tries again soon.
pub(super) fn broken(error: io::Error) -> RPCError<C> {
    RPCError::Network(NetworkError::new(&error))
}

fn unexpected(answer: Answer) -> RPCError<C> {
    let why = match answer {
        Answer::Failed(why) => why,
        Answer::Vote(_) | Answer::LeaderTransferred | Answer::Standing(_) => {
            "the peer answered another question".to_owned()
        }
    };
    RPCError::Unreachable(Unreachable::new(&AnyError::error(why)))
}
