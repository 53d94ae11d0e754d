//! A client that is killed when the cluster has granted, and it has not heard of it.

use std::process::Command;
use std::time::Duration;

use lock_chaos::cluster::{Cluster, Setup};
use lock_chaos::process::{Process, program};
use testkit::eventually;
use tokio::time::Instant;

use crate::lateness::Gauge;
use crate::raw::{EXPIRY, SOON, until_free};

const TTL: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_killed_between_commit_and_answer_leaves_nothing_after_its_ttl() {
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    // Long enough to look and to kill, short enough for the opening of the session to be answered, too.
    eventually(SOON, "the leader to take a fault", async || {
        let armed = cluster.arm(leader, "lock.after-commit", "delay=1s", 100, 0);
        armed.await.then_some(())
    })
    .await;

    let ran = cluster.dir().join("ran");
    let mut command = Command::new(program("lockctl").unwrap());
    command
        .args(["lock", "gate", "--ttl", "3s", "--wait", "20s", "--", "touch"])
        .arg(&ran)
        .env("LOCK_URLS", cluster.urls().join(","));
    // Already now: nothing may come between the grant and the kill.
    let gauge = Gauge::start(&cluster).await;
    let mut client = Process::start(&mut command, &cluster.dir().join("lockctl.log")).unwrap();
    // Seen by a read, which is not held up.
    let questions = cluster.questions().unwrap();
    eventually(SOON, "it to be granted", async || {
        let lock = questions.lock("gate").await.ok().flatten();
        lock.and_then(|lock| lock.holder).map(drop)
    })
    .await;
    client.kill();
    let killed = Instant::now();
    assert!(!ran.exists(), "it had not been told that it holds");
    cluster.heal(SOON).await.expect("it becomes well");

    let free = until_free(&cluster, "gate", SOON).await;
    let late = gauge.late(&cluster).await;
    late.assert_within(TTL + EXPIRY, free - killed, "to be gone after its death");
    eventually(TTL, "nothing of it to be left", async || {
        cluster.nothing_is_left().await.then_some(())
    })
    .await;
}
