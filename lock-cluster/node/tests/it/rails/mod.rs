//! Who may speak, how much, and what a disk may do: the program under abuse.
//!
//! Nodes are programs here, because what is asked of them concerns processes: their logs, their memory, their open
//! files, their end.

mod abuse;
mod disk;
mod mixed;
mod tls;
mod tokens;

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use lock_client::{ClientConfig, ClusterClient, LockClient};
use lock_node::{Member, PeerTlsFiles};
use tempfile::TempDir;
use testkit::eventually;
use tokio::process::{Child, Command};

use crate::cluster::members;

/// Longer than anything here takes: three programs and a crowd share a machine with other tests, and some deadlines of
/// the nodes themselves are ten seconds.
const SOON: Duration = Duration::from_secs(40);
const PEER_SECRET: &str = "only-the-members-know";
const ADMIN_TOKEN: &str = "what-administrators-say";
const CLIENT_TOKEN: &str = "what-clients-say";

/// Nodes as programs, each with a log that can be read.
struct Fleet {
    members: Vec<Member>,
    dirs: TempDir,
    nodes: Vec<Option<Child>>,
    /// In the environment of each node that is started from now on.
    settings: Vec<(String, String)>,
    /// What each node that is started from now on may have open.
    open_files_max: Option<u64>,
}

impl Fleet {
    /// Three nodes that are not started yet.
    fn new() -> Self {
        Self::of(3)
    }

    fn of(size: usize) -> Self {
        Self {
            members: members(size),
            dirs: tempfile::tempdir().expect("a temporary directory"),
            nodes: (0..size).map(|_| None).collect(),
            settings: vec![("LOCK_NODE_PEER_SECRET".to_owned(), PEER_SECRET.to_owned())],
            open_files_max: None,
        }
    }

    fn set(&mut self, variable: &str, value: &str) {
        self.settings.push((variable.to_owned(), value.to_owned()));
    }

    /// Starts those that do not run, and waits until they know a leader.
    async fn start_all(&mut self) {
        for at in 0..self.nodes.len() {
            if self.nodes[at].is_none() {
                self.start(at, &[]);
            }
        }
        for at in 0..self.nodes.len() {
            self.ready(at).await;
        }
    }

    fn start(&mut self, at: usize, flags: &[String]) {
        let command = self.command(at, flags);
        self.spawn(at, command);
    }

    fn spawn(&mut self, at: usize, mut command: Command) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_file(at));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a file for its log"))
            .kill_on_drop(true);
        self.nodes[at] = Some(command.spawn().expect("it starts"));
    }

    fn command(&self, at: usize, flags: &[String]) -> Command {
        let id = self.members[at].id.to_string();
        let program = env!("CARGO_BIN_EXE_lock-node");
        let mut command = match self.open_files_max {
            None => Command::new(program),
            Some(files) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\""), program]);
                shell
            }
        };
        command
            .args(["--id", &id, "--bootstrap", "--log-format", "json", "--data-dir"])
            .arg(self.dir(at))
            .args(flags)
            .envs(self.settings.iter().map(|(variable, value)| (variable, value)));
        for member in &self.members {
            command.args([
                "--member",
                &format!("{}={},{}", member.id, member.peer_addr, member.client_addr),
            ]);
        }
        command
    }

    async fn kill(&mut self, at: usize) {
        let mut node = self.nodes[at].take().expect("it runs");
        node.kill().await.expect("it is killed");
    }

    async fn kill_all(&mut self) {
        for mut node in self.nodes.iter_mut().filter_map(Option::take) {
            node.kill().await.expect("it is killed");
        }
    }

    /// Waits for a node to end by itself.
    async fn end(&mut self, at: usize) -> ExitStatus {
        let mut node = self.nodes[at].take().expect("it runs");
        let ended = tokio::time::timeout(SOON, node.wait()).await;
        ended.expect("it ends").expect("it can be waited for")
    }

    fn runs(&mut self, at: usize) -> bool {
        let node = self.nodes[at].as_mut().expect("it was started");
        node.try_wait().expect("it can be asked for").is_none()
    }

    async fn ready(&self, at: usize) {
        testkit::wait_ready(SOON, &self.url(at)).await;
    }

    fn pid(&self, at: usize) -> u32 {
        let node = self.nodes[at].as_ref().expect("it runs");
        node.id().expect("it was not waited for")
    }

    fn url(&self, at: usize) -> String {
        self.members[at].client_url()
    }

    fn urls(&self) -> Vec<String> {
        self.members.iter().map(Member::client_url).collect()
    }

    fn dir(&self, at: usize) -> PathBuf {
        self.dirs.path().join(self.members[at].id.to_string())
    }

    fn log_file(&self, at: usize) -> PathBuf {
        self.dirs.path().join(format!("{}.log", self.members[at].id))
    }

    /// What a node has said so far.
    fn log(&self, at: usize) -> String {
        std::fs::read_to_string(self.log_file(at)).unwrap_or_default()
    }

    /// Waits until one of these nodes has said something in its log.
    async fn says(&self, nodes: &[usize], words: &str) {
        eventually(SOON, words, async || {
            nodes.iter().any(|at| self.log(*at).contains(words)).then_some(())
        })
        .await;
    }

    fn client_config(&self, token: Option<&str>) -> ClientConfig {
        let mut config = ClientConfig::new(self.urls());
        config.ttl = Duration::from_secs(20);
        config.token = token.map(str::to_owned);
        config
    }

    async fn client(&self) -> LockClient {
        let config = self.client_config(None);
        LockClient::connect(config).await.expect("a session")
    }

    /// Which node leads.
    async fn leader(&self) -> usize {
        let cluster = ClusterClient::new(self.client_config(Some(ADMIN_TOKEN))).expect("a client");
        crate::process::leader(&cluster, SOON).await
    }

    /// The cluster does its work, however it is being treated.
    async fn grants(&self) {
        let client = self.client().await;
        let grant = client
            .acquire(&["a gate".to_owned()], SOON)
            .await
            .expect("granted");
        grant.release().await.expect("released");
        client.close().await;
    }
}

fn tls_flags(files: &PeerTlsFiles) -> Vec<String> {
    let flag = |name: &str, file: &PathBuf| [name.to_owned(), file.display().to_string()];
    [
        flag("--peer-tls-cert", &files.cert),
        flag("--peer-tls-key", &files.key),
        flag("--peer-tls-ca", &files.ca),
    ]
    .concat()
}
