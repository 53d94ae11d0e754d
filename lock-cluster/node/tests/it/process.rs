//! The `lock-node` program: killed, terminated, asked for help.

use std::path::Path;
use std::process::Command as StdCommand;
use std::time::{Duration, Instant};

use lock_client::{ClientConfig, ClusterClient, LockClient};
use lock_node::Member;
use testkit::{Program, eventually};
use tokio::process::Command;

use crate::cluster::{SOON, members};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lock-node");

fn start(members: &[Member], at: usize, dirs: &Path) -> Program {
    let id = members[at].id.to_string();
    let mut command = Command::new(PROGRAM);
    command
        .args(["--id", &id, "--bootstrap", "--data-dir"])
        .arg(dirs.join(&id));
    for member in members {
        command.args([
            "--member",
            &format!("{}={},{}", member.id, member.peer_addr, member.client_addr),
        ]);
    }
    Program::spawn(&format!("lock-node-{id}"), command).expect("it starts")
}

/// Which node leads, by its place.
pub(crate) async fn leader(cluster: &ClusterClient, within: Duration) -> usize {
    let id = eventually(within, "a leader", async || {
        for url in cluster.urls() {
            let status = cluster.status_of(url).await.ok();
            if let Some(status) = status.filter(|status| status.role == "leader") {
                return Some(status.id);
            }
        }
        None
    })
    .await;
    usize::try_from(id).expect("a small id") - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_kill_9_of_the_leader_the_next_grant_comes_soon_and_with_a_higher_token() {
    let members = members(3);
    let dirs = tempfile::tempdir().expect("a temporary directory");
    let mut nodes: Vec<Program> = (0..3).map(|at| start(&members, at, dirs.path())).collect();
    for node in &mut nodes {
        node.ready(SOON).await;
    }
    let urls: Vec<String> = members.iter().map(Member::client_url).collect();
    let cluster = ClusterClient::new(ClientConfig::new(&urls)).expect("a client");
    let mut config = ClientConfig::new(&urls);
    // The two elections below follow each other at once; the session must outlive both of them.
    config.ttl = Duration::from_secs(15);
    let client = LockClient::connect(config).await.expect("a client");
    let held = client.acquire(&["held".to_owned()], SOON).await.expect("granted");
    let mut token = held.fencing_token();

    for _ in 0..2 {
        let leads = leader(&cluster, SOON).await;
        nodes[leads].kill().await;
        let killed = Instant::now();
        let grant = client
            .acquire(&["gate".to_owned()], SOON)
            .await
            .expect("granted by the others");
        let took = killed.elapsed();
        println!("the next grant came {took:?} after the leader was killed");
        assert!(took < Duration::from_secs(10), "it took {took:?}");
        assert!(grant.fencing_token() > token);
        token = grant.fencing_token();
        grant.release().await.expect("released");
        nodes[leads] = start(&members, leads, dirs.path());
        nodes[leads].ready(SOON).await;
    }
    assert!(!held.is_lost(), "the session lived on");

    // All at once: what was acknowledged is on the disks.
    for node in &mut nodes {
        node.kill().await;
    }
    let mut nodes: Vec<Program> = (0..3).map(|at| start(&members, at, dirs.path())).collect();
    for node in &mut nodes {
        node.ready(SOON).await;
    }
    let grant = client
        .acquire(&["gate".to_owned()], SOON)
        .await
        .expect("granted after the restart");
    assert!(grant.fencing_token() > token);
    drop((held, grant));
    client.close().await;
    for mut node in nodes {
        let begun = Instant::now();
        let status = node.terminate(SOON).await;
        assert!(status.success(), "SIGTERM ends it in order: {status}");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "and within five seconds"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_at_a_frozen_leader_moves_to_the_new_one() {
    let members = members(3);
    let dirs = tempfile::tempdir().expect("a temporary directory");
    let mut nodes: Vec<Program> = (0..3).map(|at| start(&members, at, dirs.path())).collect();
    for node in &mut nodes {
        node.ready(SOON).await;
    }
    let urls: Vec<String> = members.iter().map(Member::client_url).collect();
    let cluster = ClusterClient::new(ClientConfig::new(&urls)).expect("a client");
    let mut config = ClientConfig::new(&urls);
    config.ttl = Duration::from_secs(10);
    let holder = LockClient::connect(config.clone()).await.expect("a client");
    let grant = holder.acquire(&["gate".to_owned()], SOON).await.expect("granted");
    let client = LockClient::connect(config).await.expect("a client");
    let waiting = tokio::spawn(async move {
        let wait = Duration::from_secs(40);
        client
            .acquire(&["gate".to_owned()], wait)
            .await
            .expect("granted")
            .fencing_token()
    });
    eventually(SOON, "a waiter", async || {
        let lock = cluster.lock("gate").await.ok()??;
        (lock.waiters.len() == 1).then_some(())
    })
    .await;
    let leads = leader(&cluster, SOON).await;
    // Its connections stay open, and nobody answers on them.
    nodes[leads].stop().await;
    let before = grant.fencing_token();
    grant.release().await.expect("released at the new leader");
    let after = tokio::time::timeout(SOON, waiting)
        .await
        .expect("granted in time")
        .expect("no panic");
    assert!(after > before);
    nodes[leads].resume().await;
}

#[test]
fn the_contracts_flags_are_there_and_mistakes_are_one_clear_sentence() {
    let run = |args: &[&str]| {
        let output = StdCommand::new(PROGRAM).args(args).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (good, help, _) = run(&["--help"]);
    assert!(good);
    for flag in [
        "--id",
        "--client-addr",
        "--peer-addr",
        "--member",
        "--data-dir",
        "--bootstrap",
    ] {
        assert!(help.contains(flag), "{flag} is missing in\n{help}");
    }
    let (good, _, error) = run(&["--id", "1", "--peer-addr", "0.0.0.0:8601"]);
    assert!(!good && error.contains("peer secret"), "{error}");
}
