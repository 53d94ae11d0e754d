//! Snapshots on disk: the whole state as of one log index, after which the log before it may go.
//!
//! One file, `snapshot`, holds the newest. A new one is written beside it, made durable, renamed over it, and the
//! rename made durable too: whatever moment the power fails, there is one whole snapshot or the other.
//!
//! **It is only ever replaced by a newer one.** Building a snapshot runs beside everything else, so it can finish
//! after a newer one was received from the leader. Were the older one stored then, the log between the two would
//! be gone (purged for the newer), and the node could never start again.
//!
//! A snapshot that does not check out stops the node at start-up. To go on without it would mean to forget
//! acknowledged locks; an operator who has two healthy members can empty the directory instead.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use openraft::AsyncRuntime;
use serde::{Deserialize, Serialize};

use super::envelope;
use super::runtime::Tokio;
use super::types::{Membership, Meta, Position, Snapshot};
use crate::service::Frozen;

/// Where a state machine keeps its snapshot. The simulation has one on its model disk.
pub trait SnapshotStore: Send + Sync + 'static {
    /// Turns a state into the bytes to be stored. A large one takes long: where there are threads for such work, it is
    /// done by one of them, and does not hold up a heartbeat.
    fn encode(&self, state: Frozen) -> BoxFuture<'static, io::Result<Bytes>> {
        Box::pin(async move { Ok(state.encode().into()) })
    }
    /// Stores `snapshot` durably, unless the stored one is as new or newer.
    fn save(&self, snapshot: Snapshot) -> BoxFuture<'static, io::Result<()>>;
    /// The stored one.
    fn load(&self) -> BoxFuture<'static, io::Result<Option<Snapshot>>>;
}

/// Snapshots in a directory.
pub struct SnapshotDir {
    dir: PathBuf,
    /// Which one is stored. Locked while it is being replaced.
    stored: Arc<Mutex<Option<Position>>>,
}

impl SnapshotDir {
    /// Opens the directory, making it if need be, and checks the snapshot in it.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        match fs::remove_file(dir.join(BEING_WRITTEN)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let stored = read(dir)?.and_then(|snapshot| snapshot.meta.last_log_id);
        Ok(Self {
            dir: dir.to_owned(),
            stored: Arc::new(Mutex::new(stored)),
        })
    }
}

impl SnapshotStore for SnapshotDir {
    fn encode(&self, state: Frozen) -> BoxFuture<'static, io::Result<Bytes>> {
        Box::pin(async move { Ok(Tokio::spawn_blocking(move || state.encode()).await?.into()) })
    }

    fn save(&self, snapshot: Snapshot) -> BoxFuture<'static, io::Result<()>> {
        let (dir, stored) = (self.dir.clone(), self.stored.clone());
        Box::pin(async move {
            Tokio::spawn_blocking(move || {
                let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
                if *stored >= snapshot.meta.last_log_id {
                    return Ok(());
                }
                write(&dir, &snapshot)?;
                *stored = snapshot.meta.last_log_id;
                Ok(())
            })
            .await?
        })
    }

    fn load(&self) -> BoxFuture<'static, io::Result<Option<Snapshot>>> {
        let dir = self.dir.clone();
        Box::pin(async move { Tokio::spawn_blocking(move || read(&dir)).await? })
    }
}

const STORED: &str = "snapshot";
const BEING_WRITTEN: &str = "snapshot.new";
/// Changes when the layout does.
const MAGIC: &[u8; 8] = b"LTSNAP01";

/// What a stored snapshot says about itself.
#[derive(Serialize, Deserialize)]
struct Header {
    last: Option<Position>,
    membership: Membership,
}

fn write(dir: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let header = Header {
        last: snapshot.meta.last_log_id,
        membership: snapshot.meta.last_membership.clone(),
    };
    let mut file = File::create(dir.join(BEING_WRITTEN))?;
    file.write_all(&envelope::front(MAGIC, &header, &snapshot.snapshot))?;
    file.write_all(&snapshot.snapshot)?;
    file.sync_all()?;
    fs::rename(dir.join(BEING_WRITTEN), dir.join(STORED))?;
    File::open(dir)?.sync_all()
}

fn read(dir: &Path) -> io::Result<Option<Snapshot>> {
    let path = dir.join(STORED);
    let file = match fs::read(&path) {
        Ok(file) => Bytes::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    parse(file).map(Some).map_err(|what| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the snapshot {} is damaged: {what}", path.display()),
        )
    })
}

fn parse(file: Bytes) -> Result<Snapshot, &'static str> {
    let (header, snapshot): (Header, Bytes) = envelope::open(MAGIC, file)?;
    let meta = Meta {
        last_log_id: header.last,
        last_membership: header.membership,
    };
    Ok(Snapshot { meta, snapshot })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::types::CommittedLeaderId;

    fn snapshot(term: u64, index: u64, state: &'static str) -> Snapshot {
        let last_log_id = Some(Position {
            leader_id: CommittedLeaderId::new(term),
            index,
        });
        Snapshot {
            meta: Meta {
                last_log_id,
                last_membership: Membership::default(),
            },
            snapshot: Bytes::from_static(state.as_bytes()),
        }
    }

    async fn stored(store: &SnapshotDir) -> Option<Bytes> {
        store.load().await.unwrap().map(|snapshot| snapshot.snapshot)
    }

    #[tokio::test]
    async fn a_stored_snapshot_is_only_replaced_by_a_newer_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = SnapshotDir::open(dir.path()).unwrap();
        assert_eq!(stored(&store).await, None);
        store.save(snapshot(1, 10, "ten")).await.unwrap();
        store
            .save(snapshot(1, 5, "five, built beside it and late"))
            .await
            .unwrap();
        assert_eq!(stored(&store).await.as_deref(), Some(&b"ten"[..]));
        store.save(snapshot(2, 20, "twenty")).await.unwrap();

        let reopened = SnapshotDir::open(dir.path()).unwrap();
        reopened
            .save(snapshot(1, 19, "nineteen, after a restart"))
            .await
            .unwrap();
        assert_eq!(stored(&reopened).await.as_deref(), Some(&b"twenty"[..]));
    }

    #[tokio::test]
    async fn what_a_crash_left_half_written_is_swept_away() {
        let dir = tempfile::tempdir().unwrap();
        SnapshotDir::open(dir.path())
            .unwrap()
            .save(snapshot(1, 10, "ten"))
            .await
            .unwrap();
        fs::write(dir.path().join(BEING_WRITTEN), b"LTSN").unwrap();
        let store = SnapshotDir::open(dir.path()).unwrap();
        assert!(!dir.path().join(BEING_WRITTEN).exists());
        assert_eq!(stored(&store).await.as_deref(), Some(&b"ten"[..]));
    }

    #[tokio::test]
    async fn a_flipped_bit_anywhere_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        SnapshotDir::open(dir.path())
            .unwrap()
            .save(snapshot(1, 10, "ten"))
            .await
            .unwrap();
        let whole = fs::read(dir.path().join(STORED)).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(dir.path().join(STORED), damaged).unwrap();
            assert!(
                SnapshotDir::open(dir.path()).is_err(),
                "byte {at} was flipped unnoticed"
            );
        }
        fs::write(dir.path().join(STORED), &whole[..whole.len() - 1]).unwrap();
        assert!(
            SnapshotDir::open(dir.path()).is_err(),
            "a missing byte went unnoticed"
        );
    }
}
