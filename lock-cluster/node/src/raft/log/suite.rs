//! The consensus library's own test suite for storage, on the real device; and what it does not ask.

use std::path::Path;
use std::sync::Arc;

use openraft::StorageError;
use openraft::impls::{Entry, EntryPayload};
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage, RaftLogStorageExt};
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use super::device::LogPosition;
use super::disk::DiskLog;
use super::{LogStore, to_position};
use crate::faults::NodeFaults;
use crate::raft::snapshot::SnapshotDir;
use crate::raft::state_machine::StateMachine;
use crate::raft::types::{Batch, BatchContent, LogEntry, Vote};
use crate::raft::{Cfg, Tokio};
use crate::service::{ClusterClock, Replica};

type C = Cfg<Tokio>;

fn open(dir: &Path) -> LogStore<Tokio> {
    LogStore::new(Box::new(DiskLog::open(dir, NodeFaults::new(false, &[])).unwrap()))
}

struct InTempDir;

impl StoreBuilder<C, LogStore<Tokio>, StateMachine<Tokio>, TempDir> for InTempDir {
    async fn build(&self) -> Result<(TempDir, LogStore<Tokio>, StateMachine<Tokio>), StorageError<C>> {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Arc::new(SnapshotDir::open(&dir.path().join("snapshots")).unwrap());
        let machine = StateMachine::new(Arc::new(Replica::new()), Arc::new(ClusterClock::new()), snapshots);
        let log = open(&dir.path().join("log"));
        Ok((dir, log, machine))
    }
}

#[tokio::test]
async fn the_store_passes_the_librarys_own_suite() {
    Suite::test_all(InTempDir).await.unwrap();
}

fn entry(term: u64, index: u64, bytes: usize) -> LogEntry {
    let commands = vec![lock_core::Command::Expire; bytes];
    let batch = Batch::encode(&BatchContent {
        at: lock_core::ClusterTime::ZERO,
        by: 1,
        commands,
    });
    Entry {
        log_id: to_position(LogPosition { term, index }),
        payload: EntryPayload::Normal(batch),
    }
}

#[tokio::test]
async fn everything_flushed_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    log.save_vote(&Vote::new_committed(3, 2)).await.unwrap();
    log.blocking_append((1..=20).map(|index| entry(3, index, 1)))
        .await
        .unwrap();
    log.purge(to_position(LogPosition { term: 3, index: 5 }))
        .await
        .unwrap();
    log.truncate_after(Some(to_position(LogPosition { term: 3, index: 15 })))
        .await
        .unwrap();
    log.close();

    let mut log = open(dir.path());
    assert_eq!(log.read_vote().await.unwrap(), Some(Vote::new_committed(3, 2)));
    let state = log.get_log_state().await.unwrap();
    assert_eq!(
        (
            state.last_purged_log_id.map(|id| id.index),
            state.last_log_id.map(|id| id.index)
        ),
        (Some(5), Some(15))
    );
    let entries = log.try_get_log_entries(..).await.unwrap();
    assert_eq!(
        entries,
        (6..=15).map(|index| entry(3, index, 1)).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn what_a_snapshot_has_made_superfluous_leaves_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let on_disk = || -> u64 {
        let files = std::fs::read_dir(dir.path()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let (mut most, large) = (0, entry(1, 1, 1 << 20));
    for index in 1..=100 {
        let mut next = large.clone();
        next.log_id.index = index;
        log.blocking_append([next]).await.unwrap();
        most = most.max(on_disk());
        if index % 10 == 0 {
            let upto = to_position(LogPosition {
                term: 1,
                index: index - 5,
            });
            log.purge(upto).await.unwrap();
        }
    }
    assert!(
        most < 48 << 20,
        "of 100 MiB, {most} bytes were on the disk at once"
    );
    assert_eq!(log.try_get_log_entries(..).await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_record_cut_short_at_the_end_is_dropped_and_the_rest_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    log.blocking_append((1..=9).map(|index| entry(1, index, 8)))
        .await
        .unwrap();
    log.close();
    let mut chunks: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some())
        .collect();
    chunks.sort();
    let newest = std::fs::OpenOptions::new()
        .write(true)
        .open(chunks.last().unwrap())
        .unwrap();
    newest.set_len(newest.metadata().unwrap().len() - 3).unwrap();

    let mut log = open(dir.path());
    let state = log.get_log_state().await.unwrap();
    assert_eq!(state.last_log_id.map(|id| id.index), Some(8));
    log.blocking_append([entry(2, 9, 1)]).await.unwrap();
}

#[tokio::test]
async fn a_directory_has_one_user_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    assert!(DiskLog::open(dir.path(), NodeFaults::new(false, &[])).is_err());
    log.close();
    open(dir.path());
}

#[tokio::test]
async fn one_request_to_a_follower_is_bounded_by_size_and_never_empty() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let large = 700 << 10;
    log.blocking_append([entry(1, 1, large), entry(1, 2, large), entry(1, 3, 2 << 20)])
        .await
        .unwrap();
    assert_eq!(log.limited_get_log_entries(1, 4).await.unwrap().len(), 1);
    assert_eq!(
        log.limited_get_log_entries(3, 4).await.unwrap().len(),
        1,
        "larger than the bound, but it must go somehow"
    );
}

#[tokio::test]
async fn a_closed_log_fails_instead_of_pretending() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    log.close();
    assert!(log.save_vote(&Vote::new(1, 1)).await.is_err());
    assert!(log.append([entry(1, 1, 1)], IOFlushed::noop()).await.is_err());
}

#[tokio::test]
async fn what_made_the_log_durable_is_counted_and_reading_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let before = log.syncs();
    for index in 1..=3 {
        log.blocking_append([entry(1, index, 1)]).await.unwrap();
    }
    assert_eq!(log.syncs() - before, 3, "each append was waited for");
    log.try_get_log_entries(..).await.unwrap();
    assert_eq!(log.syncs() - before, 3);
}
