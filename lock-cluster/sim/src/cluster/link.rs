//! What the consensus library calls to reach another member: its messages on the model network.
//!
//! The answers are waited for as long as the library says and no longer. Entries go to a member either over a stream,
//! as between real members, or (in every other seed) as single requests, each of which may come late, twice, or
//! behind the next: a TCP stream never does that, and the protocol must not depend on it.

use std::time::Duration;

use futures::Stream;
use lock_node::raft::Cfg;
use lock_node::raft::types::{PeerNode, Snapshot, Vote};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2, stream_append_sequential};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, AsyncRuntime, OptionalSend};
use openraft_rt::Select2;

use super::Member;
use super::stream::{AppendResult, AppendStream};
use crate::network::{Endpoint, Kind, Network};
use crate::runtime::SimRt;

type C = Cfg<SimRt>;

/// How long a snapshot's transfer may take.
const TRANSFER_DEADLINE: Duration = Duration::from_secs(2);

/// Makes one member's links to the others.
pub(super) struct Links {
    pub(super) network: Network,
    pub(super) me: Endpoint,
}

impl RaftNetworkFactory<C> for Links {
    type Network = Link;

    async fn new_client(&mut self, target: u64, _: &PeerNode) -> Link {
        Link {
            network: self.network.clone(),
            way: (self.me, target),
        }
    }
}

/// One user's link to one member.
pub(super) struct Link {
    network: Network,
    way: (Endpoint, Endpoint),
}

impl Link {
    async fn call<T, E>(
        &self,
        kind: Kind,
        patience: Duration,
        serve: impl Fn(&Member) -> BoxFuture<'static, Result<T, RaftError<C, E>>> + Send + 'static,
    ) -> Result<T, RPCError<C>>
    where
        T: Send + 'static,
        E: std::error::Error + Send + 'static,
    {
        match SimRt::timeout(patience, self.network.call(self.way, kind, serve)).await {
            Ok(Ok(answer)) => Ok(answer),
            // The connection of a member that stops is broken off.
            Ok(Err(stopped)) => Err(RPCError::Network(NetworkError::new(&AnyError::error(stopped)))),
            Err(late) => Err(RPCError::Unreachable(Unreachable::new(&AnyError::error(late)))),
        }
    }
}

impl RaftNetworkV2<C> for Link {
    type SnapshotData = bytes::Bytes;

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, AppendResult>, RPCError<C>>>
    where
        S: Stream<Item = AppendEntriesRequest<C>> + OptionalSend + Unpin + 'static,
    {
        if !self.network.has_streams() {
            return stream_append_sequential(self, input, option);
        }
        Box::pin(async move {
            let stream = AppendStream::connect(self.network.clone(), self.way, input).await?;
            let answers = futures::stream::unfold(stream, |mut stream| async move {
                let answer = stream.next().await?;
                Some((answer, stream))
            });
            Ok(Box::pin(answers) as BoxStream<'s, _>)
        })
    }

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<C>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<C>, RPCError<C>> {
        let serve = move |member: &Member| -> BoxFuture<'static, _> {
            let (raft, rpc) = (member.raft(), rpc.clone());
            Box::pin(async move { raft.append_entries(rpc).await })
        };
        self.call("append", option.soft_ttl(), serve).await
    }

    async fn vote(&mut self, rpc: VoteRequest<C>, option: RPCOption) -> Result<VoteResponse<C>, RPCError<C>> {
        let serve = move |member: &Member| -> BoxFuture<'static, _> {
            let (raft, rpc) = (member.raft(), rpc.clone());
            Box::pin(async move { raft.vote(rpc).await })
        };
        self.call("vote", option.soft_ttl(), serve).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<C>,
        option: RPCOption,
    ) -> Result<VoteResponse<C>, RPCError<C>> {
        let serve = move |member: &Member| -> BoxFuture<'static, _> {
            let (raft, rpc) = (member.raft(), rpc.clone());
            Box::pin(async move { raft.pre_vote(rpc).await })
        };
        self.call("pre-vote", option.soft_ttl(), serve).await
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<C>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<C>, RPCError<C>> {
        let serve = move |member: &Member| -> BoxFuture<'static, _> {
            let (raft, rpc) = (member.raft(), rpc.clone());
            Box::pin(async move {
                raft.handle_transfer_leader(rpc)
                    .await
                    .map_err(RaftError::<C>::Fatal)
            })
        };
        self.call("transfer", option.soft_ttl(), serve).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<C>, StreamingError<C>> {
        let serve = move |member: &Member| -> BoxFuture<'static, _> {
            let (raft, snapshot) = (member.raft(), snapshot.clone());
            Box::pin(async move {
                raft.install_full_snapshot(vote, snapshot)
                    .await
                    .map_err(RaftError::<C>::Fatal)
            })
        };
        let sending = self.call("snapshot", TRANSFER_DEADLINE, serve);
        match SimRt::select2(cancel, sending).await {
            Select2::First(closed) => Err(StreamingError::Closed(closed)),
            Select2::Second(Ok(response)) => Ok(response),
            Select2::Second(Err(error)) => Err(StreamingError::Unreachable(Unreachable::new(
                &AnyError::error(error),
            ))),
        }
    }
}
