//! Three nodes in one process: a whole cluster to try things on, here by taking its leader away.
//!
//! ```text
//! cargo run -p lock-node --example three_in_one_process
//! ```
//!
//! In production the three are in three programs on three machines, each started with the same list of members and
//! its own id; nothing else in the code changes.

use std::path::Path;
use std::time::Duration;

use lock_client::{ClientConfig, LockClient};
use lock_node::{Member, Node, NodeConfig};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // id = where the other members reach it, where clients reach it. Not the usual ports: the suite may be running.
    let members = [
        "1=127.0.0.1:8611,127.0.0.1:8511".parse()?,
        "2=127.0.0.1:8612,127.0.0.1:8512".parse()?,
        "3=127.0.0.1:8613,127.0.0.1:8513".parse()?,
    ];
    run(&members, Path::new("data/three-nodes")).await?;
    Ok(())
}

/// Returns the tokens of two grants, one before and one after the leader went away.
pub(crate) async fn run(members: &[Member], data_dir: &Path) -> anyhow::Result<(u64, u64)> {
    let mut nodes = Vec::new();
    for member in members {
        let dir = data_dir.join(member.id.to_string());
        nodes.push(Node::start(NodeConfig::member(member.id, members, dir)?).await?);
    }

    // A client is told all nodes, and finds out by itself which of them leads.
    let client = LockClient::connect(ClientConfig::new(nodes.iter().map(Node::client_url))).await?;
    let names = ["seat/12".to_owned(), "seat/13".to_owned()];
    let before = client.acquire(&names, Duration::from_secs(10)).await?;

    // Whoever leads now is stopped. The others elect one of themselves within about a second.
    let leader = nodes[0].service().status().leader;
    if let Some(at) = nodes
        .iter()
        .position(|node| leader.as_ref().is_some_and(|l| l.client_url == node.client_url()))
    {
        nodes.remove(at).shutdown().await;
    }

    // What was held is still held, and the next grant has a higher token.
    assert!(!before.is_lost());
    let after = client
        .acquire(&["seat/14".to_owned()], Duration::from_secs(10))
        .await?;
    let tokens = (before.fencing_token(), after.fencing_token());
    println!(
        "granted {} before and {} after the leader went away",
        tokens.0, tokens.1
    );
    before.release().await?;
    after.release().await?;

    client.close().await;
    for node in nodes {
        node.shutdown().await;
    }
    Ok(tokens)
}
