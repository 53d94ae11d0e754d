//! Strategies that need the lock cluster: a real node, and two processes that compete.

use std::net::SocketAddr;
use std::time::Duration;

use guard::{GuardConfig, GuardError, Guards, WriteRule};
use lock_node::{Member, Node, NodeConfig};
use tempfile::TempDir;
use ticketing_types::Strategy;

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(20);

struct Cluster {
    node: Node,
    _dir: TempDir,
}

impl Cluster {
    /// One node: enough for what a lock promises, though not for surviving a crash.
    async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let member = Member {
            id: 1,
            peer_addr: any_port.to_string(),
            client_addr: any_port.to_string(),
        };
        let config = NodeConfig {
            id: 1,
            client_addr: any_port,
            peer_addr: any_port,
            members: vec![member],
            data_dir: dir.path().to_owned(),
            bootstrap: true,
            peer_secret: None,
            peer_tls: None,
            admin_token: None,
            client_token: None,
            enable_faults: false,
        };
        Self {
            node: Node::start(config).await.expect("a node"),
            _dir: dir,
        }
    }

    /// What a process would have: its own session.
    fn guards(&self, label: &str) -> Guards {
        Guards::new(GuardConfig {
            lock_urls: vec![self.node.client_url().to_owned()],
            session_ttl: Duration::from_millis(500),
            label: label.to_owned(),
        })
    }
}

fn names() -> Vec<String> {
    vec!["event/1".to_owned(), "event/2".to_owned()]
}

fn token(rule: WriteRule) -> u64 {
    match rule {
        WriteRule::Fenced(token) => token,
        other => panic!("{other:?} has no token"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_inside_and_the_next_one_has_a_higher_token() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.guards("one"), cluster.guards("two"));
    let first = one.enter(Strategy::Raft, &names(), LONG).await.expect("free");
    for strategy in [Strategy::Raft, Strategy::RaftUnfenced] {
        let refused = two.enter(strategy, &names()[..1], SHORT).await;
        assert_eq!(
            refused.map(|_| ()),
            Err(GuardError::WaitTimeout),
            "{strategy}: the names are the same"
        );
    }
    let first_token = token(first.rule);
    first.leave().await;

    let second = two
        .enter(Strategy::Raft, &names(), SHORT)
        .await
        .expect("left before that");
    assert!(token(second.rule) > first_token);
    drop(second);
    let third = one
        .enter(Strategy::RaftUnfenced, &names(), LONG)
        .await
        .expect("a drop leaves, too");
    assert_eq!(third.rule, WriteRule::Plain);
    third.leave().await;
    one.close().await;
    two.close().await;
    cluster.node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_holder_does_not_know_that_somebody_else_is_inside_but_its_token_tells() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.guards("one"), cluster.guards("two"));
    let paused = one.enter(Strategy::Raft, &names(), LONG).await.expect("free");
    let pause = paused.pause_keep_alive();
    let other = two
        .enter(Strategy::Raft, &names(), LONG)
        .await
        .expect("the session of the first is over");
    assert!(token(paused.rule) < token(other.rule));
    drop(pause);
    paused.leave().await;

    // What the first one gave back was no longer its own.
    assert!(one.enter(Strategy::Raft, &names(), SHORT).await.is_err());
    other.leave().await;
    assert!(
        one.enter(Strategy::Raft, &names(), LONG).await.is_ok(),
        "with a new session"
    );
    one.close().await;
    two.close().await;
    cluster.node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_stops_waiting_leaves_no_place_behind() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.guards("one"), cluster.guards("two"));
    let held = one.enter(Strategy::Raft, &names(), LONG).await.expect("free");
    let names = names();
    let waiting = two.enter(Strategy::Raft, &names, LONG);
    assert!(
        tokio::time::timeout(SHORT, waiting).await.is_err(),
        "given up from outside"
    );
    held.leave().await;
    // Were the abandoned place granted, this would wait for a session that is kept alive for ever.
    assert!(one.enter(Strategy::Raft, &names, LONG).await.is_ok());
    one.close().await;
    two.close().await;
    cluster.node.shutdown().await;
}
