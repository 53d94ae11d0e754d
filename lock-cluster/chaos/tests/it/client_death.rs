//! A client that is killed when the cluster has granted, and it has not heard of it.

use std::process::Command;
use std::time::Duration;

use lock_chaos::cluster::{Cluster, Setup};
use lock_chaos::process::{Process, program};
use lock_chaos::run::eventually;
use tokio::time::Instant;

use crate::raw::{SLACK, SOON, until_free};

const TTL: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_killed_between_commit_and_answer_leaves_nothing_after_its_ttl() {
    let cluster = Cluster::start(3, Setup::default()).await.unwrap();
    let leader = cluster.wait_for_leader(SOON).await.unwrap();
    // Long enough to look and to kill, short enough for the opening of the session to be answered, too.
    let late = async || cluster.arm(leader, "lock.after-commit", "delay=1s", 100, 0).await;
    assert!(eventually(SOON, late).await, "the leader takes no fault");

    let ran = cluster.dir().join("ran");
    let mut command = Command::new(program("lockctl").unwrap());
    command
        .args(["lock", "gate", "--ttl", "3s", "--wait", "20s", "--", "touch"])
        .arg(&ran)
        .env("LOCK_URLS", cluster.urls().join(","));
    let mut client = Process::start(&mut command, &cluster.dir().join("lockctl.log")).unwrap();
    // Seen by a read, which is not held up.
    let questions = cluster.questions().unwrap();
    let granted = async || {
        let lock = questions.lock("gate").await.ok().flatten();
        lock.is_some_and(|lock| lock.holder.is_some())
    };
    assert!(eventually(SOON, granted).await, "it was never granted");
    client.kill();
    let killed = Instant::now();
    assert!(!ran.exists(), "it had not been told that it holds");
    cluster.heal(SOON).await.expect("it becomes well");

    let free = until_free(&cluster, "gate", SOON).await;
    let lasted = free - killed;
    println!("it was gone {lasted:?} after its death, with a TTL of {TTL:?}");
    assert!(
        lasted <= TTL + Duration::from_secs(1) + SLACK,
        "it held for {lasted:?} after its death"
    );
    let nothing = async || match cluster.leader().await {
        Some(leader) => cluster
            .status(leader)
            .await
            .is_some_and(|status| (status.sessions, status.locks, status.waiters) == (0, 0, 0)),
        None => false,
    };
    assert!(eventually(TTL, nothing).await, "something of it is left");
}
