//! Ends that stop reading: a follower, those who watch events, and a client on a pipe. None of them may grow the memory of
//! the nodes that work on.
//!
//! What they would miss is far more than everything that a node keeps on purpose: the log's cache and its open chunk, 4 MiB
//! each, and the feed's 16,384 latest events, which the load beforehand fills up.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::BytesMut;
use lock_chaos::cluster::{Cluster, Setup};
use lock_chaos::process::{Process, program};
use lock_client::LockClient;
use lock_core::limits::{NAME_BYTES_MAX, NAMES_PER_ACQUISITION_MAX};
use lock_core::{AcquireId, Label, LockNames, SessionId, TtlMs, WaitMs};
use lock_pipe::frame::put;
use lock_pipe::{Call, REQUEST_BYTES_MAX, Request};
use testkit::eventually;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::raw::{SOON, client};

const MIB: u64 = 1 << 20;
/// Of names in entries of the log, after which a node has in memory what it keeps on purpose.
const KEPT_BYTES: u64 = 36 * MIB;
/// The same while a follower does not read.
const MISSED_BY_FOLLOWER: u64 = 100 * MIB;
/// The same while clients do not read. An event tells all names, and there are two of each acquire, for each watcher.
const MISSED_BY_CLIENTS: u64 = 50 * MIB;
/// How much a node may grow meanwhile.
const GROWN_BY_FOLLOWER_MAX: u64 = 25 * MIB;
/// For two watchers 256 events each on the way to the connection, and for one pipe 4,096 calls under way, of 4 KiB of names.
const GROWN_BY_CLIENTS_MAX: u64 = 40 * MIB;
/// What is locked at once.
const WORKERS: u64 = 32;
/// Names of one acquire, as many and as long as they may be.
const NAMES_BYTES: u64 = (NAMES_PER_ACQUISITION_MAX * NAME_BYTES_MAX) as u64;

/// The longest list of the longest names there is.
fn long_names(mark: &str) -> Vec<String> {
    let long = |number| format!("{:x<NAME_BYTES_MAX$}", format!("{mark}/{number}/"));
    (0..NAMES_PER_ACQUISITION_MAX).map(long).collect()
}

/// Acquires and releases until names of so many bytes have gone through the log.
async fn load(client: &LockClient, bytes: u64) {
    let left = Arc::new(AtomicI64::new(i64::try_from(bytes / NAMES_BYTES).unwrap()));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let (client, left) = (client.clone(), left.clone());
        let names = long_names(&worker.to_string());
        workers.spawn(async move {
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let grant = client.acquire(&names, SOON).await.expect("granted");
                grant.release().await.expect("released");
            }
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked.expect("no worker fails");
    }
}

/// Resident memory of a process.
fn resident_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("Linux tells it") * 1024
}

/// Three nodes that have everything in memory that they keep on purpose, and a client that loads them.
async fn loaded() -> (Cluster, LockClient) {
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let client = client(&cluster, "load", SOON).await;
    load(&client, KEPT_BYTES).await;
    (cluster, client)
}

/// Loads the nodes, and asserts that none of those in `watched` grows.
async fn assert_none_grows(
    cluster: &Cluster,
    client: &LockClient,
    bytes: u64,
    watched: &[usize],
    grown_max: u64,
) {
    let processes = cluster.process_ids();
    let resident = || -> Vec<u64> { watched.iter().map(|at| resident_bytes(processes[*at])).collect() };
    let before = resident();
    load(client, bytes).await;
    for ((at, before), after) in watched.iter().zip(before).zip(resident()) {
        let grown = after.saturating_sub(before);
        println!(
            "node {} grew by {:.1} MiB from {} MiB while {} MiB of names were not read",
            at + 1,
            grown as f64 / MIB as f64,
            before / MIB,
            bytes / MIB
        );
        assert!(grown <= grown_max, "node {} grew by {grown} bytes", at + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_is_stopped_grows_nobody_and_catches_up() {
    let (cluster, client) = loaded().await;
    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    let stopped = (leader + 1) % 3;
    cluster.freeze(stopped);
    // Whoever leads at the end: on a busy machine that may change.
    let others = [leader, (leader + 2) % 3];
    assert_none_grows(
        &cluster,
        &client,
        MISSED_BY_FOLLOWER,
        &others,
        GROWN_BY_FOLLOWER_MAX,
    )
    .await;

    cluster.thaw(stopped);
    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    let applied = cluster.status(leader).await.unwrap().applied_index;
    eventually(2 * SOON, "the follower to catch up", async || {
        let status = cluster.status(stopped).await?;
        (status.applied_index >= applied).then_some(())
    })
    .await;
    client.close().await;
    eventually(SOON, "nothing to be left", async || {
        cluster.nothing_is_left().await.then_some(())
    })
    .await;
}

/// Asks for the same long answer as long as the node takes questions, and reads none; how much it could say.
async fn ask_and_never_read(url: String) -> u64 {
    let addr = url.strip_prefix("http://").expect("a plain URL");
    let mut node = TcpStream::connect(addr).await.unwrap();
    let upgrade = format!(
        "GET {} HTTP/1.1\r\nhost: {addr}\r\nconnection: Upgrade\r\nupgrade: {}\r\n\r\n",
        lock_pipe::PATH,
        lock_pipe::PROTOCOL
    );
    node.write_all(upgrade.as_bytes()).await.unwrap();
    let session_id = SessionId::new(Uuid::new_v4());
    let open = Call::Open {
        session_id,
        ttl: TtlMs::new(60_000).unwrap(),
        label: Label::parse("never reads").unwrap(),
    };
    // The same attempt each time: it is granted once, and answered alike.
    let acquire = Call::Acquire {
        session_id,
        acquire_id: AcquireId::new(1),
        names: LockNames::parse(&long_names("unread")).unwrap(),
        wait: WaitMs::ZERO,
    };
    let mut said = 0;
    for (id, call) in (0..).zip(std::iter::once(open).chain(std::iter::repeat(acquire))) {
        let mut frame = BytesMut::new();
        put(&mut frame, &Request::Call { id, call }, REQUEST_BYTES_MAX).unwrap();
        if node.write_all(&frame).await.is_err() {
            break;
        }
        said += frame.len() as u64;
    }
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_read_no_events_and_no_answers_grow_nobody() {
    const WATCHERS: usize = 2;
    let (cluster, client) = loaded().await;
    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    let log = |number: usize| cluster.dir().join(format!("watch-{number}.log"));
    let watcher = |number| {
        let mut command = Command::new(program("lockctl").unwrap());
        command.arg("watch").env("LOCK_URLS", cluster.url(leader));
        Process::start(&mut command, &log(number)).unwrap()
    };
    let watchers: Vec<Process> = (0..WATCHERS).map(watcher).collect();
    let heard = async |name: &str| {
        for number in 0..WATCHERS {
            eventually(
                2 * SOON,
                &format!("watcher {number} to hear of {name}"),
                async || {
                    // Again and again: one that has not begun to watch misses it.
                    let grant = client.acquire(&[name.to_owned()], SOON).await.expect("granted");
                    grant.release().await.expect("released");
                    let printed = fs::read(log(number)).unwrap_or_default();
                    String::from_utf8_lossy(&printed).contains(name).then_some(())
                },
            )
            .await;
        }
    };
    heard("the beginning").await;
    watchers.iter().for_each(Process::freeze);
    let asking = tokio::spawn(ask_and_never_read(cluster.url(leader)));
    assert_none_grows(
        &cluster,
        &client,
        MISSED_BY_CLIENTS,
        &[leader],
        GROWN_BY_CLIENTS_MAX,
    )
    .await;

    let said = timeout(SOON, asking).await.expect("it is hung up on").unwrap();
    println!("it could ask in {} MiB before it was hung up on", said / MIB);
    watchers.iter().for_each(Process::thaw);
    heard("the end").await;
    for number in 0..WATCHERS {
        let printed = fs::read(log(number)).unwrap();
        assert!(
            String::from_utf8_lossy(&printed).contains("compacted"),
            "watcher {number} was not told that it had missed something"
        );
    }
}
