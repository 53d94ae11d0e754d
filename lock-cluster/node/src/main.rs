//! `lock-node`: one member of a lock cluster as a program of its own.
//!
//! ```text
//! lock-node --id 1 --bootstrap \
//!     --member 1=127.0.0.1:8601,127.0.0.1:8501 \
//!     --member 2=127.0.0.1:8602,127.0.0.1:8502 \
//!     --member 3=127.0.0.1:8603,127.0.0.1:8503
//! ```
//!
//! A node that joins later is started without `--bootstrap`, and taken in by an administrator (`lockctl members add`).
//!
//! Prints `ready http://…` once it answers clients (with or without a leader: ask `/readyz` for that).

use clap::Parser;
use lock_node::Node;
use lock_node::cli::NodeArgs;
use service_kit::{LogFormat, limits, shutdown, telemetry};

/// A member of the lock cluster: named locks with fencing tokens, replicated by Raft.
#[derive(Debug, Parser)]
#[command(version, about, after_help = JOINING)]
struct Args {
    #[command(flatten)]
    node: NodeArgs,

    /// How logs are written; what is logged is up to RUST_LOG
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,

    /// Threads that run the node (the disk has its own). One is best while one is enough: a lock goes through a dozen
    /// tasks, and to hand it to another thread costs more than to do it
    #[arg(long, env = "LOCK_NODE_WORKER_THREADS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    worker_threads: u16,
}

const JOINING: &str = "\
To join a cluster that works already: start the node on an empty directory, under an id that no member has, with \
--member for itself and for the others and without --bootstrap; then say to the cluster\n\n    \
lockctl members add ID --peer-addr HOST:PORT --client-addr HOST:PORT\n\n\
To replace a member whose disk is lost: add another one like that, then\n\n    lockctl members remove OLD_ID";

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    telemetry::init(args.log_format);
    limits::raise_nofile();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.worker_threads.into())
        .enable_all()
        .build()?;
    runtime.block_on(run(args))
}

async fn run(args: Args) -> anyhow::Result<()> {
    let shutdown = shutdown::on_signal()?;
    let node = Node::start(args.node.into_config()?).await?;
    println!("ready {}", node.client_url());
    let failed = tokio::select! {
        () = shutdown.cancelled() => None,
        why = node.failed() => Some(why),
    };
    node.shutdown().await;
    match failed {
        None => Ok(()),
        Some(why) => Err(anyhow::anyhow!("the node had to stop: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_has_an_environment_variable() {
        testkit::check_flags(Args::command());
    }
}
