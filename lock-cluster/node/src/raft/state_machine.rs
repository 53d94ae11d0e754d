//! From committed entries to applied commands.
//!
//! The rules are `lock-core`'s and the bookkeeping of who waits is [`Replica`]'s; this adapter decodes a batch,
//! has it applied, notes how far the log was applied under which membership, and hands the replies to whoever
//! proposed them. Nothing here is on disk: after a restart the library installs the stored snapshot and applies
//! the log behind it again, which is the same computation and ends in the same state.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use lock_core::Reply;
use openraft::OptionalSend;
use openraft::impls::EntryPayload;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};

use super::runtime::ServiceRt;
use super::snapshot::SnapshotStore;
use super::types::{BatchContent, Cfg, Membership, Meta, Position, Snapshot};
use crate::service::{ClusterClock, Frozen, Replica};

/// One node's replica, as the library drives it.
pub struct StateMachine<R: ServiceRt> {
    replica: Arc<Replica>,
    clock: Arc<ClusterClock<R>>,
    snapshots: Arc<dyn SnapshotStore>,
    last: Option<Position>,
    membership: Membership,
}

impl<R: ServiceRt> StateMachine<R> {
    /// An empty one; what is stored in `snapshots` is installed when Raft starts.
    pub fn new(
        replica: Arc<Replica>,
        clock: Arc<ClusterClock<R>>,
        snapshots: Arc<dyn SnapshotStore>,
    ) -> Self {
        Self {
            replica,
            clock,
            snapshots,
            last: None,
            membership: Membership::default(),
        }
    }
}

impl<R: ServiceRt> StateMachine<R> {
    /// A state that breaks its own rules panics. Left alone, the panic would end one task of the library's and leave a
    /// node that looks alive and applies nothing; as an error it stops the node, and says why.
    fn apply_batch(&self, term: u64, index: u64, content: BatchContent) -> io::Result<Vec<Reply>> {
        let apply = AssertUnwindSafe(|| self.replica.apply(term, index, content));
        catch_unwind(apply).map_err(|panic| {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("a panic");
            io::Error::other(format!("applying log entry {index} broke the state: {what}"))
        })
    }
}

impl<R: ServiceRt> RaftStateMachine<Cfg<R>> for StateMachine<R> {
    type SnapshotData = Bytes;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> io::Result<(Option<Position>, Membership)> {
        Ok((self.last, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Cfg<R>>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            let Position { leader_id, index } = entry.log_id;
            let replies = match entry.payload {
                EntryPayload::Normal(batch) => self.apply_batch(leader_id.term, index, batch.decode()?)?,
                EntryPayload::Membership(membership) => {
                    self.membership = Membership::new(Some(entry.log_id), membership);
                    self.replica.pass(index)
                }
                EntryPayload::Blank => self.replica.pass(index),
            };
            self.last = Some(entry.log_id);
            // A term's first entry, of whatever kind, starts the clock of its leader.
            self.clock.applied(leader_id.term, || self.replica.now());
            if let Some(responder) = responder {
                responder.send(replies);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        // Copied now, encoded and written later: apply stands still only for the copy.
        SnapshotBuilder {
            meta: Meta {
                last_log_id: self.last,
                last_membership: self.membership.clone(),
            },
            frozen: Some(self.replica.freeze()),
            snapshots: self.snapshots.clone(),
        }
    }

    async fn install_snapshot(&mut self, meta: &Meta, state: Bytes) -> io::Result<()> {
        let frozen = Frozen::decode(&state)?;
        // On disk before it is believed: the log it replaces is purged right after.
        self.snapshots
            .save(Snapshot {
                meta: meta.clone(),
                snapshot: state,
            })
            .await?;
        self.replica
            .restore(frozen, meta.last_log_id.map(|last| last.index))?;
        self.last = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        self.snapshots.load().await
    }
}

/// Turns one frozen state into a stored snapshot, beside whatever else goes on.
pub struct SnapshotBuilder {
    meta: Meta,
    frozen: Option<Frozen>,
    snapshots: Arc<dyn SnapshotStore>,
}

impl<R: ServiceRt> RaftSnapshotBuilder<Cfg<R>> for SnapshotBuilder {
    type SnapshotData = Bytes;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let frozen = self
            .frozen
            .take()
            .ok_or_else(|| io::Error::other("a snapshot builder builds once"))?;
        let snapshot = Snapshot {
            meta: self.meta.clone(),
            snapshot: self.snapshots.encode(frozen).await?,
        };
        self.snapshots.save(snapshot.clone()).await?;
        Ok(snapshot)
    }
}
