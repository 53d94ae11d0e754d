//! The cluster under trial: `lock-node` processes on loopback, each with a folder, a log file and fault points.
//!
//! Everything here may be called at any time from several places: a node that is down is not asked, one that does not
//! answer is not waited for.

mod faults;
mod misdeeds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use lock_client::wire::ClusterStatus;
use lock_client::{ClientConfig, ClusterClient};
use reqwest::Client;
use tempfile::TempDir;
use testkit::free_ports;
use tokio::time::{Instant, sleep};

use crate::process::{Process, program};

/// What administrators of the cluster under trial say.
pub const ADMIN_TOKEN: &str = "the chaos administrator";
const PEER_SECRET: &str = "the chaos peers";
/// A node that does not answer by then is taken to be frozen or gone.
const ASK: Duration = Duration::from_millis(700);
/// From one look to the next, where something is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How to start the nodes.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The program, if not the `lock-node` beside this one.
    pub program: Option<PathBuf>,
    /// What else is in its environment; `{id}` in a value stands for the id of the node.
    pub environment: BTreeMap<String, String>,
}

/// Some nodes, numbered from 0; node 0 has the id 1.
#[derive(Debug)]
pub struct Cluster {
    dir: TempDir,
    program: PathBuf,
    environment: BTreeMap<String, String>,
    peer_ports: Vec<u16>,
    client_ports: Vec<u16>,
    machines: Vec<Mutex<Machine>>,
    http: Client,
    /// Nodes that ended, and nobody had asked them to.
    deaths: Mutex<Vec<String>>,
}

#[derive(Debug, Default)]
struct Machine {
    process: Option<Process>,
    frozen: bool,
}

impl Cluster {
    /// Starts `size` nodes and waits until one of them leads.
    ///
    /// # Errors
    /// If the program is missing, or no leader comes.
    pub async fn start(size: usize, setup: Setup) -> anyhow::Result<Self> {
        let program = setup.program.map_or_else(|| program("lock-node"), Ok)?;
        let cluster = Self {
            dir: tempfile::tempdir()?,
            program,
            environment: setup.environment,
            peer_ports: free_ports(size),
            client_ports: free_ports(size),
            machines: (0..size).map(|_| Mutex::default()).collect(),
            http: Client::builder().no_proxy().timeout(ASK).build()?,
            deaths: Mutex::default(),
        };
        for at in cluster.all() {
            cluster.start_node(at)?;
        }
        let leader = cluster.wait_for_leader(Duration::from_secs(30)).await;
        leader.context("the new cluster found no leader")?;
        Ok(cluster)
    }

    /// The numbers of all nodes.
    pub fn all(&self) -> std::ops::Range<usize> {
        0..self.machines.len()
    }

    /// Where clients reach a node.
    pub fn url(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}", self.client_ports[at])
    }

    /// Where clients reach the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.all().map(|at| self.url(at)).collect()
    }

    /// What a client has to be told to reach all nodes, as an administrator.
    pub fn client_config(&self) -> ClientConfig {
        let mut config = ClientConfig::new(self.urls());
        config.token = Some(ADMIN_TOKEN.to_owned());
        config
    }

    /// What a node has printed so far.
    pub fn log(&self, at: usize) -> PathBuf {
        self.dir.path().join(format!("node-{}.log", at + 1))
    }

    /// What a node keeps.
    pub fn data(&self, at: usize) -> PathBuf {
        self.dir.path().join(format!("data-{}", at + 1))
    }

    /// A place for files of the same run.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a node that is not running.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start_node(&self, at: usize) -> anyhow::Result<()> {
        let mut machine = self.machine(at);
        if machine.process.is_some() && self.bury(at, &mut machine).is_none() {
            return Ok(());
        }
        let mut command = Command::new(&self.program);
        command
            .args([
                "--id",
                &(at + 1).to_string(),
                "--bootstrap",
                "--enable-faults",
                "--data-dir",
            ])
            .arg(self.data(at))
            .env("LOCK_NODE_PEER_SECRET", PEER_SECRET)
            .env("LOCK_NODE_ADMIN_TOKEN", ADMIN_TOKEN);
        for (variable, value) in &self.environment {
            command.env(variable, value.replace("{id}", &(at + 1).to_string()));
        }
        for member in self.all() {
            let (id, peer, client) = (member + 1, self.peer_ports[member], self.client_ports[member]);
            command.args(["--member", &format!("{id}=127.0.0.1:{peer},127.0.0.1:{client}")]);
        }
        machine.process = Some(Process::start(&mut command, &self.log(at))?);
        machine.frozen = false;
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&self, at: usize) {
        let mut machine = self.machine(at);
        self.bury(at, &mut machine);
        machine.process = None;
        machine.frozen = false;
    }

    /// SIGSTOP.
    pub fn freeze(&self, at: usize) {
        let mut machine = self.machine(at);
        machine.frozen = true;
        if let Some(process) = &machine.process {
            process.freeze();
        }
    }

    /// SIGCONT.
    pub fn thaw(&self, at: usize) {
        let mut machine = self.machine(at);
        machine.frozen = false;
        if let Some(process) = &machine.process {
            process.thaw();
        }
    }

    /// Whether a node runs and is not frozen.
    pub fn is_up(&self, at: usize) -> bool {
        let mut machine = self.machine(at);
        let runs = machine
            .process
            .as_mut()
            .is_some_and(|process| process.ended().is_none());
        runs && !machine.frozen
    }

    /// What a node says about itself.
    pub async fn status(&self, at: usize) -> Option<ClusterStatus> {
        if !self.is_up(at) {
            return None;
        }
        let asked = self.http.get(format!("{}/v1/cluster", self.url(at))).send().await;
        asked.ok()?.json().await.ok()
    }

    /// Who leads, if anybody says so: a leader of yesterday may not have heard of the new one.
    pub async fn leader(&self) -> Option<usize> {
        let mut leader = None;
        for at in self.all() {
            if let Some(status) = self.status(at).await
                && status.role == "leader"
            {
                leader = leader.max(Some((status.term, at)));
            }
        }
        leader.map(|(_, at)| at)
    }

    /// Who leads, as soon as somebody does.
    pub async fn wait_for_leader(&self, within: Duration) -> Option<usize> {
        // A loop of its own: `found_within` takes a closure that borrows, and such a future cannot be spawned.
        let deadline = Instant::now() + within;
        loop {
            match self.leader().await {
                None if Instant::now() < deadline => sleep(LOOK_EVERY).await,
                found => return found,
            }
        }
    }

    /// Whether the leader says that there are no sessions, locks and waiters.
    pub async fn nothing_is_left(&self) -> bool {
        let Some(leader) = self.leader().await else {
            return false;
        };
        let status = self.status(leader).await;
        status.is_some_and(|status| (status.sessions, status.locks, status.waiters) == (0, 0, 0))
    }

    /// The ids of the processes of the nodes that are not down.
    pub fn process_ids(&self) -> Vec<u32> {
        let id = |at| Some(self.machine(at).process.as_ref()?.id());
        self.all().filter_map(id).collect()
    }

    /// A client that asks all nodes, without a session.
    ///
    /// # Errors
    /// Never, with the addresses of a cluster.
    pub fn questions(&self) -> anyhow::Result<ClusterClient> {
        Ok(ClusterClient::new(self.client_config())?)
    }

    fn machine(&self, at: usize) -> MutexGuard<'_, Machine> {
        self.machines[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
