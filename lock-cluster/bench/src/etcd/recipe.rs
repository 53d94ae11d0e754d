//! Locking with etcd as its Go package does it (`client/v3/concurrency`, `Mutex`): the client runs the recipe.
//!
//! Each who wants the lock puts a key of its own under the lock's prefix; the oldest key holds. An acquire that finds
//! nobody is one transaction, a release one deletion. Who is not the oldest looks for the key just before its own and
//! watches for its deletion, again and again until there is none.

use anyhow::{Context as _, bail, ensure};
use tokio::sync::mpsc;
use tonic::Streaming;

use super::messages::{
    Compare, CompareTarget, DeleteRangeRequest, EventType, PutRequest, RangeRequest, RangeResponse, Request,
    RequestOp, SortOrder, SortTarget, TxnRequest, WatchCancelRequest, WatchCommand, WatchCreateRequest,
    WatchRequest, WatchResponse,
};
use super::session::Session;

/// The one stream on which a client watches, opened with its first wait.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    stream: Option<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>)>,
    last_id: i64,
}

/// Waits for the lock; returns the key that stands for holding it.
pub(crate) async fn acquire(session: &Session, watcher: &mut Watcher, name: &str) -> anyhow::Result<Vec<u8>> {
    let prefix = format!("{name}/");
    let own_key = format!("{prefix}{:x}", session.lease()).into_bytes();
    let put = Request::Put(PutRequest {
        key: own_key.clone(),
        lease: session.lease(),
    });
    let get = Request::Range(RangeRequest {
        key: own_key.clone(),
        ..RangeRequest::default()
    });
    let get_oldest = Request::Range(by_age(&prefix, SortOrder::Ascend));
    let answer = session
        .etcd()
        .txn(TxnRequest {
            compare: vec![Compare {
                target: CompareTarget::Create.into(),
                key: own_key.clone(),
                create_revision: Some(0),
            }],
            success: vec![op(put), op(get_oldest.clone())],
            failure: vec![op(get), op(get_oldest)],
        })
        .await?;
    let range = |at: usize| answer.responses.get(at).and_then(|op| op.range.as_ref());
    let own_revision = if answer.succeeded {
        answer.header.as_ref().context("a header")?.revision
    } else {
        first_created(range(0)).context("the own key")?
    };
    let oldest = first_created(range(1));
    if oldest.is_some_and(|oldest| oldest != own_revision) {
        watcher
            .wait_for_deletions(session, &prefix, own_revision - 1)
            .await?;
        let still_there = session
            .etcd()
            .range(RangeRequest {
                key: own_key.clone(),
                ..RangeRequest::default()
            })
            .await?;
        ensure!(!still_there.kvs.is_empty(), "the lease ended while waiting");
    }
    Ok(own_key)
}

/// Gives it back.
pub(crate) async fn release(session: &Session, key: Vec<u8>) -> anyhow::Result<()> {
    let answer = session.etcd().delete_range(DeleteRangeRequest { key }).await?;
    ensure!(answer.deleted == 1, "the lock was lost before its release");
    Ok(())
}

impl Watcher {
    /// Returns when no key under the prefix is as old as `revision_max` or older.
    async fn wait_for_deletions(
        &mut self,
        session: &Session,
        prefix: &str,
        revision_max: i64,
    ) -> anyhow::Result<()> {
        loop {
            let before = session
                .etcd()
                .range(RangeRequest {
                    max_create_revision: revision_max,
                    ..by_age(prefix, SortOrder::Descend)
                })
                .await?;
            let Some(predecessor) = before.kvs.first() else {
                return Ok(());
            };
            let revision = before.header.as_ref().context("a header")?.revision;
            self.wait_for_deletion(session, predecessor.key.clone(), revision)
                .await?;
        }
    }

    async fn wait_for_deletion(&mut self, session: &Session, key: Vec<u8>, from: i64) -> anyhow::Result<()> {
        self.last_id += 1;
        let watch_id = self.last_id;
        let create = command(WatchCommand::Create(WatchCreateRequest {
            key,
            start_revision: from,
            watch_id,
        }));
        let (requests, events) = match &mut self.stream {
            Some(stream) => {
                stream.0.send(create).await?;
                stream
            }
            closed => closed.insert(session.etcd().watch(create).await?),
        };
        loop {
            let answer = events.message().await?.context("the watch stream has ended")?;
            // The confirmation of an earlier watch's end comes whenever it comes.
            if answer.watch_id != watch_id {
                continue;
            }
            if answer.canceled {
                bail!("the watch was ended: {}", answer.cancel_reason);
            }
            if answer
                .events
                .iter()
                .any(|event| event.kind == i32::from(EventType::Delete))
            {
                let cancel = WatchCommand::Cancel(WatchCancelRequest { watch_id });
                requests.send(command(cancel)).await?;
                return Ok(());
            }
        }
    }
}

/// The first key under a prefix by age.
fn by_age(prefix: &str, order: SortOrder) -> RangeRequest {
    let mut range_end = prefix.as_bytes().to_vec();
    // The prefix ends with '/', so its last byte can be raised: everything below is under the prefix.
    if let Some(last) = range_end.last_mut() {
        *last += 1;
    }
    RangeRequest {
        key: prefix.into(),
        range_end,
        limit: 1,
        sort_order: order.into(),
        sort_target: SortTarget::Create.into(),
        ..RangeRequest::default()
    }
}

fn first_created(range: Option<&RangeResponse>) -> Option<i64> {
    Some(range?.kvs.first()?.create_revision)
}

fn op(request: Request) -> RequestOp {
    RequestOp {
        request: Some(request),
    }
}

fn command(command: WatchCommand) -> WatchRequest {
    WatchRequest {
        command: Some(command),
    }
}
