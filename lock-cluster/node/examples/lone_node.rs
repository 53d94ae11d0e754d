//! A lock service inside your own program: one node, no other process, nothing to set up.
//!
//! ```text
//! cargo run -p lock-node --example lone_node
//! ```
//!
//! A lone node survives its own crashes, as every grant is on its disk before it is answered. It does not survive its
//! machine: for that there are three (`three_in_one_process`, or one in each of three programs).

use std::path::Path;
use std::time::Duration;

use lock_client::{ClientConfig, LockClient};
use lock_node::{Node, NodeConfig};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Path::new("data/lone-node")).await?;
    Ok(())
}

/// Returns the token of the grant.
pub(crate) async fn run(data_dir: &Path) -> anyhow::Result<u64> {
    // Loopback, and whatever ports are free.
    let node = Node::start(NodeConfig::alone(data_dir)).await?;
    println!("the lock service is at {}", node.client_url());

    let client = LockClient::connect(ClientConfig::new([node.client_url()])).await?;
    let grant = client
        .acquire(&["report/2026".to_owned()], Duration::from_secs(10))
        .await?;
    let token = grant.fencing_token();
    println!("held, with fencing token {token}");
    // … the work, whose every write says `… and fencing_token <= {token}` …
    grant.release().await?;

    client.close().await;
    node.shutdown().await;
    Ok(token)
}
