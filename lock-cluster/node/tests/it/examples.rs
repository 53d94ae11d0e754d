//! The examples, run as they are.

use testkit::eventually;

use crate::cluster::{Cluster, SOON, members};

#[path = "../../examples/client.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod client;
#[path = "../../examples/lone_node.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod lone_node;
#[path = "../../examples/three_in_one_process.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod three_in_one_process;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_node_goes_on_where_it_left_off() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let first = lone_node::run(dir.path()).await.expect("it runs");
    let second = lone_node::run(dir.path()).await.expect("it runs again");
    assert!(second > first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_in_one_process_lose_their_leader_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (before, after) = three_in_one_process::run(&members(3), dir.path())
        .await
        .expect("it runs");
    assert!(after > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_works_while_it_holds_the_lock_and_leaves_nothing() {
    let cluster = Cluster::start(3).await;
    let outcome = client::run(cluster.urls().into_iter()).await.expect("it runs");
    assert_eq!(outcome, "done");
    eventually(SOON, "no session", async || {
        (cluster.counts().await == (0, 0, 0)).then_some(())
    })
    .await;
}
