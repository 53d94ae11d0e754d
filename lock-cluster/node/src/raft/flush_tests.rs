//! Nothing is committed before it is durable: a lone node (its own disk is the majority), and a new leader whose vote
//! completes the majority, on a device that holds the flushes of entries back for as long as the test likes.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lock_core::Command;
use testkit::eventually;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::identity::Identity;
use super::ids::ClusterId;
use super::log::LogStore;
use super::log::device::{DeviceState, Flushed, LogDevice, LogPosition, VoteRecord};
use super::log::disk::DiskLog;
use super::peer::{self, Key, Me, PeerNetwork, Standing, Transport};
use super::snapshot::SnapshotDir;
use super::{Consensus, StateMachine, nodes};
use crate::service::{ClusterClock, LockService, Replica, Role};
use crate::{Member, NodeFaults};

pub(super) const SOON: Duration = Duration::from_secs(20);
/// Long enough for a thousand commits, if they did not wait for the disk.
const MEANWHILE: Duration = Duration::from_millis(300);

/// `Some` while flushes are held back.
pub(super) type Held = Arc<Mutex<Option<Vec<Flushed>>>>;

struct SlowDevice {
    disk: DiskLog,
    held: Held,
    /// What was written last was a vote: its flush is never held back.
    voted: bool,
}

impl LogDevice for SlowDevice {
    fn state(&self) -> DeviceState {
        self.disk.state()
    }
    fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<(LogPosition, Bytes)>> {
        self.disk.read(range, bytes_max)
    }
    fn save_vote(&mut self, vote: VoteRecord) -> io::Result<()> {
        self.voted = true;
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
        let voted = std::mem::take(&mut self.voted);
        match self.held.lock().unwrap().as_mut() {
            Some(held) if !voted => {
                held.push(done);
                Ok(())
            }
            _ => self.disk.flush(done),
        }
    }
}

async fn lone_node(dir: &Path, held: Held) -> (Consensus<crate::Tokio>, LockService) {
    let members: Vec<Member> = vec!["1=127.0.0.1:1,127.0.0.1:2".parse().unwrap()];
    let (consensus, service) = member(&members, &me(dir, 1), dir, held).await;
    if consensus.may_found().await.unwrap() {
        consensus.found(a_cluster(), &Default::default()).await.unwrap();
    }
    (consensus, service)
}

pub(super) fn me(dir: &Path, id: u64) -> Me {
    Me {
        key: Key::new(None),
        identity: Arc::new(Identity::of_directory(dir, id).unwrap()),
    }
}

pub(super) fn a_cluster() -> ClusterId {
    ClusterId::from_u128(1)
}

pub(super) async fn member(
    members: &[Member],
    me: &Me,
    dir: &Path,
    held: Held,
) -> (Consensus<crate::Tokio>, LockService) {
    let faults = NodeFaults::new(false, &[]);
    let disk = DiskLog::open(&dir.join("log"), faults.clone()).unwrap();
    let log = LogStore::new(Box::new(SlowDevice {
        disk,
        held,
        voted: false,
    }));
    let (replica, clock) = (Arc::new(Replica::new()), Arc::new(ClusterClock::new()));
    let snapshots = Arc::new(SnapshotDir::open(&dir.join("snapshots")).unwrap());
    let machine = StateMachine::new(replica.clone(), clock.clone(), snapshots);
    let network = PeerNetwork::new(
        me.clone(),
        Arc::new(Standing::new()),
        Transport::Plain,
        faults.clone(),
        nodes(members),
    );
    let consensus = Consensus::start(me.identity.member(), members, log, machine, network, 1_000)
        .await
        .unwrap();
    let service = LockService::start(consensus.clone(), replica, clock, faults);
    (consensus, service)
}

/// The peer port of a member. Closes when the guard is dropped.
pub(super) fn listen(member: &Member, me: &Me, consensus: &Consensus<crate::Tokio>) -> DropGuard {
    let port = service_kit::bind(member.peer_addr.parse().unwrap()).unwrap();
    let closing = CancellationToken::new();
    let faults = NodeFaults::new(false, &[]);
    tokio::spawn(peer::serve(
        port,
        me.clone(),
        Arc::new(Standing::new()),
        Transport::Plain,
        consensus.clone(),
        faults,
        closing.clone(),
    ));
    closing.drop_guard()
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

/// A new leader may have entries that it took over as a follower and that are not on its disk yet. They do not count as
/// its own voice for them (openraft issue 2118 was a way in which they did).
///
/// Of two members, the one that cannot be reached is the one that is elected: the other asks in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_new_leader_has_not_flushed_it_does_not_count() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let ports = testkit::free_ports(4);
    let members: Vec<Member> = [(1, 0), (2, 2)]
        .map(|(id, at)| Member {
            id,
            peer_addr: format!("127.0.0.1:{}", ports[at]),
            client_addr: format!("127.0.0.1:{}", ports[at + 1]),
        })
        .into();
    let identities = [me(dirs[0].path(), 1), me(dirs[1].path(), 2)];
    let (first, first_service) = member(&members, &identities[0], dirs[0].path(), Held::default()).await;
    let held = Held::default();
    let (second, second_service) = member(&members, &identities[1], dirs[1].path(), held.clone()).await;
    let second_port = listen(&members[1], &identities[1], &second);
    identities[0].identity.found(a_cluster()).unwrap();
    first.found(a_cluster(), &Default::default()).await.unwrap();
    eventually(SOON, "the first leads", async || {
        first_service.propose(Command::Expire).await.ok()
    })
    .await;

    // An entry that the second has in its log, and not on its disk. Both are needed for a majority.
    *held.lock().unwrap() = Some(Vec::new());
    let mut proposed = Box::pin(first_service.propose(Command::Expire));
    assert!(tokio::time::timeout(MEANWHILE, &mut proposed).await.is_err());
    let index = first_service.status().last_log;
    eventually(SOON, "the second has it", async || {
        (second_service.status().last_log >= index).then_some(())
    })
    .await;

    // The first comes back without it being known what became of the entry, and votes for the second.
    first_service.stop();
    drop((proposed, second_port));
    first.shutdown().await;
    eventually(SOON, "the second is out of reach", async || {
        let reached = tokio::net::TcpStream::connect(&members[1].peer_addr).await;
        reached.is_err().then_some(())
    })
    .await;
    let (first, first_service) = member(&members, &identities[0], dirs[0].path(), Held::default()).await;
    let _first_port = listen(&members[0], &identities[0], &first);
    eventually(
        SOON,
        "the second leads, and the first has all its entries",
        async || {
            let (leader, follower) = (second_service.status(), first_service.status());
            (leader.role == Role::Leader && leader.last_log > index && follower.last_log == leader.last_log)
                .then_some(())
        },
    )
    .await;
    tokio::time::sleep(MEANWHILE).await;
    assert!(
        second_service.status().committed < index,
        "committed with one disk of two: {:?}",
        second_service.status()
    );

    let flushes = held.lock().unwrap().take().unwrap();
    flushes.into_iter().for_each(|done| done(Ok(())));
    eventually(SOON, "it is committed", async || {
        (second_service.status().committed > index).then_some(())
    })
    .await;
    for (service, consensus) in [(first_service, first), (second_service, second)] {
        service.stop();
        consensus.shutdown().await;
    }
}
