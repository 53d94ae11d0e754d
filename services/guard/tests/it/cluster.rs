//! Strategies that need the lock cluster: a real node, and two processes that compete.

use std::time::Duration;

use guard::{ClientConfig, GuardError, Guards, WriteRule};
use lock_node::{Node, NodeConfig, Secret};
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
        Self::guarded_by(None).await
    }

    /// One that wants this token of its clients.
    async fn guarded_by(client_token: Option<Secret>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let config = NodeConfig {
            client_token,
            ..NodeConfig::alone(dir.path())
        };
        Self {
            node: Node::start(config).await.expect("a node"),
            _dir: dir,
        }
    }

    /// What a process would have: its own session.
    fn guards(&self, label: &str) -> Guards {
        self.guards_showing(label, None)
    }

    fn guards_showing(&self, label: &str, token: Option<&str>) -> Guards {
        Guards::new(ClientConfig {
            ttl: Duration::from_millis(500),
            label: label.to_owned(),
            token: token.map(str::to_owned),
            ..ClientConfig::new([self.node.client_url()])
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_wants_a_token_takes_who_shows_it_and_tells_the_others_why_not() {
    let cluster = Cluster::guarded_by(Secret::new("what clients say")).await;
    for token in [None, Some("a guess")] {
        let stranger = cluster.guards_showing("stranger", token);
        for strategy in [Strategy::Raft, Strategy::RaftUnfenced] {
            let refused = stranger.enter(strategy, &names(), LONG).await;
            let refused = refused.map(|_| ()).expect_err("a stranger");
            assert_eq!(refused, GuardError::LockRefused, "{strategy}");
            assert!(
                refused.to_string().contains("LOCK_CLIENT_TOKEN"),
                "what to look at: {refused}"
            );
            assert_eq!(refused.slug(), "lock-unavailable");
        }
        let free = stranger.enter(Strategy::Atomic, &names(), SHORT).await;
        assert!(free.is_ok(), "who needs no cluster needs no token");
        stranger.close().await;
    }
    let known = cluster.guards_showing("known", Some("what clients say"));
    let entry = known.enter(Strategy::Raft, &names(), LONG).await.expect("free");
    entry.leave().await;
    known.close().await;
    cluster.node.shutdown().await;
}
