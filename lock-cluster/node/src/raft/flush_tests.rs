//! Nothing is committed before it is durable: a lone node (its own disk is the majority) on a device that holds its
//! flushes back for as long as the test likes.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lock_core::Command;
use testkit::eventually;

use super::disk_id::DiskId;
use super::log::LogStore;
use super::log::device::{DeviceState, Flushed, LogDevice, LogPosition, VoteRecord};
use super::log::disk::DiskLog;
use super::peer::{Badge, Key, PeerNetwork, Standing, Transport};
use super::snapshot::SnapshotDir;
use super::{Consensus, StateMachine, nodes};
use crate::service::{ClusterClock, LockService, Replica};
use crate::{Member, NodeFaults};

const SOON: Duration = Duration::from_secs(20);
/// Long enough for a thousand commits, if they did not wait for the disk.
const MEANWHILE: Duration = Duration::from_millis(300);

/// `Some` while flushes are held back.
type Held = Arc<Mutex<Option<Vec<Flushed>>>>;

struct SlowDevice {
    disk: DiskLog,
    held: Held,
}

impl LogDevice for SlowDevice {
    fn state(&self) -> DeviceState {
        self.disk.state()
    }
    fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<(LogPosition, Bytes)>> {
        self.disk.read(range, bytes_max)
    }
    fn save_vote(&mut self, vote: VoteRecord) -> io::Result<()> {
        self.disk.save_vote(vote)
    }
    fn append(&mut self, entries: Vec<(LogPosition, Bytes)>) -> io::Result<()> {
        self.disk.append(entries)
    }
    fn truncate(&mut self, index: u64) -> io::Result<()> {
        self.disk.truncate(index)
    }
    fn purge(&mut self, upto: LogPosition) -> io::Result<()> {
        self.disk.purge(upto)
    }
    fn save_committed(&mut self, committed: LogPosition) -> io::Result<()> {
        self.disk.save_committed(committed)
    }
    fn syncs(&self) -> u64 {
        self.disk.syncs()
    }
    fn flush(&mut self, done: Flushed) -> io::Result<()> {
        match self.held.lock().unwrap().as_mut() {
            Some(held) => {
                held.push(done);
                Ok(())
            }
            None => self.disk.flush(done),
        }
    }
}

async fn lone_node(dir: &std::path::Path, held: Held) -> (Consensus<crate::Tokio>, LockService) {
    let faults = NodeFaults::new(false, &[]);
    let members: Vec<Member> = vec!["1=127.0.0.1:1,127.0.0.1:2".parse().unwrap()];
    let disk = DiskLog::open(&dir.join("log"), faults.clone()).unwrap();
    let log = LogStore::new(Box::new(SlowDevice { disk, held }));
    let (replica, clock) = (Arc::new(Replica::new()), Arc::new(ClusterClock::new()));
    let snapshots = Arc::new(SnapshotDir::open(&dir.join("snapshots")).unwrap());
    let machine = StateMachine::new(replica.clone(), clock.clone(), snapshots);
    let network = PeerNetwork::new(
        Badge {
            key: Key::new(None),
            id: 1,
            disk: DiskId::drawn(),
        },
        Arc::new(Standing::new()),
        Transport::Plain,
        faults.clone(),
        nodes(&members),
    );
    let consensus = Consensus::start(1, &members, log, machine, network, 1_000)
        .await
        .unwrap();
    if consensus.may_found().await.unwrap() {
        consensus.found(&Default::default()).await.unwrap();
    }
    let service = LockService::start(consensus.clone(), replica, clock, faults);
    (consensus, service)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_answered_before_its_flush() {
    let dir = tempfile::tempdir().unwrap();
    let held = Held::default();
    let (consensus, service) = lone_node(dir.path(), held.clone()).await;
    eventually(SOON, "it leads", async || {
        service.propose(Command::Expire).await.ok()
    })
    .await;

    let before = service.status();
    *held.lock().unwrap() = Some(Vec::new());
    let mut proposed = Box::pin(service.propose(Command::Expire));
    assert!(
        tokio::time::timeout(MEANWHILE, &mut proposed).await.is_err(),
        "answered before it was durable"
    );
    let meanwhile = service.status();
    assert!(meanwhile.last_log > before.last_log, "it was appended");
    assert_eq!(meanwhile.committed, before.last_log, "and not counted");

    let flushes = held.lock().unwrap().take().unwrap();
    flushes.into_iter().for_each(|done| done(Ok(())));
    proposed.await.unwrap();
    service.stop();
    consensus.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_stops_the_node_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let held = Held::default();
    let (consensus, service) = lone_node(dir.path(), held.clone()).await;
    eventually(SOON, "it leads", async || {
        service.propose(Command::Expire).await.ok()
    })
    .await;

    *held.lock().unwrap() = Some(Vec::new());
    let mut proposed = Box::pin(service.propose(Command::Expire));
    assert!(tokio::time::timeout(MEANWHILE, &mut proposed).await.is_err());
    let full = || io::Error::new(io::ErrorKind::StorageFull, "no space left on device");
    let flushes = held.lock().unwrap().take().unwrap();
    flushes.into_iter().for_each(|done| done(Err(full())));

    let reason = tokio::time::timeout(SOON, consensus.stopped())
        .await
        .expect("it stops");
    assert!(reason.contains("no space left"), "{reason}");
    assert!(
        proposed.await.unwrap_err().outcome_unknown(),
        "it may yet be on the disk"
    );
    assert!(service.propose(Command::Expire).await.is_err());
}
