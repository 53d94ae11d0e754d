//! Calls to one etcd server over one connection.

use futures::{StreamExt as _, stream};
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;

use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::{
    DeleteRangeRequest, DeleteRangeResponse, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest,
    LeaseKeepAliveResponse, LeaseRevokeRequest, LeaseRevokeResponse, LockRequest, LockResponse, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, UnlockRequest, UnlockResponse, WatchRequest, WatchResponse,
};

/// Requests of a stream that wait to be sent. A client has at most a watch and its cancellation on the way.
const STREAM_QUEUE: usize = 16;

/// A connection. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Etcd {
    channel: Channel,
}

impl Etcd {
    /// Connects to the server at this URL.
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let endpoint = Channel::from_shared(url.to_owned())?.tcp_nodelay(true);
        Ok(Self {
            channel: endpoint.connect().await?,
        })
    }

    /// Connects to whichever of these answers, now and later.
    pub(crate) fn of_any(urls: &[String]) -> anyhow::Result<Self> {
        let endpoints = urls
            .iter()
            .map(|url| Ok(Channel::from_shared(url.clone())?.tcp_nodelay(true)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            channel: Channel::balance_list(endpoints.into_iter()),
        })
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        self.unary("/etcdserverpb.KV/Range", request).await
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        self.unary("/etcdserverpb.KV/Txn", request).await
    }

    pub(super) async fn delete_range(
        &self,
        request: DeleteRangeRequest,
    ) -> Result<DeleteRangeResponse, Status> {
        self.unary("/etcdserverpb.KV/DeleteRange", request).await
    }

    pub(super) async fn lease_grant(&self, request: LeaseGrantRequest) -> Result<LeaseGrantResponse, Status> {
        self.unary("/etcdserverpb.Lease/LeaseGrant", request).await
    }

    pub(super) async fn lease_revoke(
        &self,
        request: LeaseRevokeRequest,
    ) -> Result<LeaseRevokeResponse, Status> {
        self.unary("/etcdserverpb.Lease/LeaseRevoke", request).await
    }

    pub(super) async fn lock(&self, request: LockRequest) -> Result<LockResponse, Status> {
        self.unary("/v3lockpb.Lock/Lock", request).await
    }

    pub(super) async fn unlock(&self, request: UnlockRequest) -> Result<UnlockResponse, Status> {
        self.unary("/v3lockpb.Lock/Unlock", request).await
    }

    pub(super) async fn lease_keep_alive(
        &self,
        first: LeaseKeepAliveRequest,
    ) -> Result<
        (
            mpsc::Sender<LeaseKeepAliveRequest>,
            Streaming<LeaseKeepAliveResponse>,
        ),
        Status,
    > {
        self.stream("/etcdserverpb.Lease/LeaseKeepAlive", first).await
    }

    pub(super) async fn watch(
        &self,
        first: WatchRequest,
    ) -> Result<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>), Status> {
        self.stream("/etcdserverpb.Watch/Watch", first).await
    }

    async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc().await?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc
            .unary(Request::new(request), PathAndQuery::from_static(path), codec)
            .await?;
        Ok(answer.into_inner())
    }

    /// Both directions of a stream, which ends when the sender is dropped. etcd opens its direction only with its
    /// first answer, so the first request goes along.
    async fn stream<Q, A>(
        &self,
        path: &'static str,
        first: Q,
    ) -> Result<(mpsc::Sender<Q>, Streaming<A>), Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let (sender, requests) = mpsc::channel(STREAM_QUEUE);
        let requests = stream::iter([first]).chain(ReceiverStream::new(requests));
        let mut grpc = self.grpc().await?;
        let answers = grpc
            .streaming(
                Request::new(requests),
                PathAndQuery::from_static(path),
                ProstCodec::<Q, A>::default(),
            )
            .await?;
        Ok((sender, answers.into_inner()))
    }

    async fn grpc(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(grpc)
    }
}
