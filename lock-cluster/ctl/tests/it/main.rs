//! `lockctl` as a shell runs it, against a real node.
//!
//! What it runs here ends with its standard input, whose other end the test holds: so it ends with the test, however
//! that ends. (`exec 3<&0`: a shell gives what it starts in the background another input.)

mod events;
mod lock;
mod lost;
mod operate;
mod refusals;
mod signals;

use std::process::{Output, Stdio};
use std::time::Duration;

use lock_node::{Member, Node, NodeConfig, Secret};
use serde_json::Value;
use tempfile::TempDir;
use testkit::free_ports;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

const SOON: Duration = Duration::from_secs(15);
const LOCKCTL: &str = env!("CARGO_BIN_EXE_lockctl");
const ADMIN_TOKEN: &str = "let me in";

/// One node, and the means to run `lockctl` against it.
struct Shell {
    node: Node,
    _dir: TempDir,
}

impl Shell {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(change: impl Fn(&mut NodeConfig)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut config = config(1, dir.path());
        change(&mut config);
        let node = Node::start(config).await.expect("the node starts");
        testkit::wait_ready(SOON, node.client_url()).await;
        Self { node, _dir: dir }
    }

    fn command(&self, args: &[&str]) -> Command {
        lockctl(self.node.client_url(), args)
    }

    /// The same, started by another program that has its say before.
    fn command_by(&self, starter: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).arg(LOCKCTL).args(args);
        at(command, self.node.client_url())
    }

    async fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().await.expect("it runs")
    }

    async fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
        let output = self.run(&args).await;
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Runs a script under a lock, and waits until it says that it holds. With its input.
    async fn hold(&self, name: &str, script: &str) -> (Child, ChildStdin) {
        let args = ["lock", name, "--ttl", "2s", "--", "sh", "-c", script];
        held(self.command(&args)).await
    }
}

/// Starts a command that says `held` when it holds its lock. Its input is taken from it: to wait for it would close that.
async fn held(mut command: Command) -> (Child, ChildStdin) {
    let mut holder = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let stdout = holder.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let line = tokio::time::timeout(SOON, lines.next_line()).await;
    let line = line.expect("it says so in time").expect("it can be read");
    assert_eq!(line.as_deref(), Some("held"));
    let input = holder.stdin.take().expect("a pipe");
    (holder, input)
}

/// A node on this machine that knows of no other; 1 founds a cluster.
fn config(id: u64, dir: &std::path::Path) -> NodeConfig {
    let ports = free_ports(2);
    let member = Member {
        id,
        peer_addr: format!("127.0.0.1:{}", ports[0]),
        client_addr: format!("127.0.0.1:{}", ports[1]),
    };
    NodeConfig {
        bootstrap: id == 1,
        admin_token: Secret::new(ADMIN_TOKEN),
        ..NodeConfig::member(id, &[member], dir).expect("addresses")
    }
}

fn lockctl(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(LOCKCTL);
    command.args(args);
    at(command, url)
}

/// Tells `lockctl` where its cluster is.
fn at(mut command: Command, url: &str) -> Command {
    command
        .env("LOCK_URLS", url)
        .env("LOCK_ADMIN_TOKEN", ADMIN_TOKEN)
        .stdin(Stdio::null());
    command.kill_on_drop(true);
    command
}

/// Whether a process is there, and has not ended. (Whoever has to hear of its end may not have asked yet.)
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // The state follows the name, which is in brackets and may have some of its own (proc(5)).
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
