//! Three servers that are a cluster: of lock nodes, or of etcd. Both tell the same things about themselves through
//! the same kind of page (`/metrics`, in Prometheus' text format), under different names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

use crate::proc::CpuTime;
use crate::server::Server;

/// Members of each cluster.
const MEMBERS: usize = 3;
/// How long a cluster may take until it has a leader.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks at a cluster that is not ready.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a page of metrics may take.
const PAGE_WITHIN: Duration = Duration::from_secs(2);
/// etcd stops taking writes at 2 GiB unless told otherwise, which a long measurement can reach: it keeps old
/// revisions until somebody compacts them.
const ETCD_QUOTA_BYTES: &str = "8589934592";

/// What the members are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    LockNode,
    Etcd,
}

/// A running cluster. Dropped, its processes are killed.
#[derive(Debug)]
pub(crate) struct Cluster {
    kind: Kind,
    servers: Vec<Server>,
    urls: Vec<String>,
    dirs: Vec<PathBuf>,
    http: reqwest::Client,
}

/// What a cluster has used up since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu: CpuTime,
    pub(crate) syncs: f64,
}

impl Cluster {
    /// Starts three members with their data in `dir`, and waits for their leader.
    pub(crate) async fn start(kind: Kind, program: &Path, dir: &Path) -> anyhow::Result<Self> {
        let ports = service_kit::free_ports(2 * MEMBERS)?;
        let (clients, peers) = ports.split_at(MEMBERS);
        let mut cluster = Self {
            kind,
            servers: Vec::new(),
            urls: clients
                .iter()
                .map(|port| format!("http://127.0.0.1:{port}"))
                .collect(),
            dirs: Vec::new(),
            http: reqwest::Client::builder().no_proxy().build()?,
        };
        for at in 0..MEMBERS {
            let name = format!("{}-{}", kind.name(), at + 1);
            let data = dir.join(&name);
            let args = match kind {
                Kind::LockNode => lock_node_args(at, clients, peers, &data),
                Kind::Etcd => etcd_args(at, clients, peers, &data),
            };
            let output = dir.join(format!("{name}.log"));
            cluster.servers.push(Server::start(program, args, output)?);
            cluster.dirs.push(data);
        }
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Where clients reach the members.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Waits until each member knows a leader; returns which one leads.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<usize> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            for server in &mut self.servers {
                server.check()?;
            }
            if let Some(leader) = self.agreed_leader().await {
                return Ok(leader);
            }
            if Instant::now() > deadline {
                bail!(
                    "the {} cluster has no leader after {READY_WITHIN:?}",
                    self.kind.name()
                );
            }
            sleep(PAUSE).await;
        }
    }

    async fn agreed_leader(&self) -> Option<usize> {
        let names = self.kind.metric_names();
        let mut leads = Vec::new();
        for at in 0..MEMBERS {
            let page = self.metrics(at).await.ok()?;
            if metric(&page, names.has_leader)? != 1.0 {
                return None;
            }
            if metric(&page, names.is_leader)? == 1.0 {
                leads.push(at);
            }
        }
        match leads[..] {
            [leader] => Some(leader),
            _ => None,
        }
    }

    /// `kill -9` of one member.
    pub(crate) fn kill(&mut self, at: usize) -> anyhow::Result<()> {
        self.servers[at].kill()
    }

    /// Starts a killed member again.
    pub(crate) fn restart(&mut self, at: usize) -> anyhow::Result<()> {
        self.servers[at].restart()
    }

    /// Processor time of one member since its start.
    pub(crate) fn cpu_of(&self, at: usize) -> anyhow::Result<CpuTime> {
        self.servers[at].cpu()
    }

    /// Bytes in the members' snapshots.
    pub(crate) fn snapshot_bytes(&self) -> anyhow::Result<Vec<u64>> {
        self.dirs
            .iter()
            .map(|dir| {
                let dir = dir.join("snapshots");
                std::fs::read_dir(&dir)
                    .with_context(|| format!("reading {}", dir.display()))?
                    .map(|file| Ok(file?.metadata()?.len()))
                    .sum()
            })
            .collect()
    }

    /// A number that each member has in its metrics.
    pub(crate) async fn each(&self, name: &str) -> anyhow::Result<Vec<f64>> {
        let mut values = Vec::new();
        for at in 0..MEMBERS {
            let page = self.metrics(at).await?;
            values.push(metric(&page, name).with_context(|| format!("no metric {name}"))?);
        }
        Ok(values)
    }

    /// What it has used up so far.
    pub(crate) async fn usage(&self) -> anyhow::Result<Usage> {
        let syncs = self.each(self.kind.metric_names().syncs).await?;
        let mut cpu = CpuTime::default();
        for server in &self.servers {
            cpu = cpu + server.cpu()?;
        }
        Ok(Usage {
            cpu,
            syncs: syncs.iter().sum(),
        })
    }

    /// Resident memory of each member, in bytes.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<Vec<u64>> {
        self.servers.iter().map(Server::resident_bytes).collect()
    }

    async fn metrics(&self, at: usize) -> anyhow::Result<String> {
        let url = format!("{}/metrics", self.urls[at]);
        let response = self.http.get(url).timeout(PAGE_WITHIN).send().await?;
        Ok(response.error_for_status()?.text().await?)
    }
}

/// The same facts under each program's names.
struct MetricNames {
    is_leader: &'static str,
    has_leader: &'static str,
    syncs: &'static str,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LockNode => "lock-node",
            Self::Etcd => "etcd",
        }
    }

    fn metric_names(self) -> MetricNames {
        match self {
            Self::LockNode => MetricNames {
                is_leader: "raft_is_leader",
                has_leader: "raft_has_leader",
                syncs: "lock_node_log_flushes_total",
            },
            Self::Etcd => MetricNames {
                is_leader: "etcd_server_is_leader",
                has_leader: "etcd_server_has_leader",
                syncs: "etcd_disk_wal_fsync_duration_seconds_count",
            },
        }
    }
}

fn lock_node_args(at: usize, clients: &[u16], peers: &[u16], data: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--id".into(), (at + 1).to_string().into(), "--bootstrap".into()];
    args.extend(["--data-dir".into(), data.into()]);
    for (member, (client, peer)) in clients.iter().zip(peers).enumerate() {
        let member = format!("{}=127.0.0.1:{peer},127.0.0.1:{client}", member + 1);
        args.extend(["--member".into(), member.into()]);
    }
    args
}

fn etcd_args(at: usize, clients: &[u16], peers: &[u16], data: &Path) -> Vec<OsString> {
    let name = |at: usize| format!("etcd-{}", at + 1);
    let client_url = format!("http://127.0.0.1:{}", clients[at]);
    let peer_url = |port: u16| format!("http://127.0.0.1:{port}");
    let members: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(at, port)| format!("{}={}", name(at), peer_url(*port)))
        .collect();
    let mut args: Vec<OsString> = vec!["--data-dir".into(), data.into()];
    for (flag, value) in [
        ("--name", name(at)),
        ("--listen-client-urls", client_url.clone()),
        ("--advertise-client-urls", client_url),
        ("--listen-peer-urls", peer_url(peers[at])),
        ("--initial-advertise-peer-urls", peer_url(peers[at])),
        ("--initial-cluster", members.join(",")),
        ("--initial-cluster-state", "new".to_owned()),
        ("--quota-backend-bytes", ETCD_QUOTA_BYTES.to_owned()),
        ("--log-level", "error".to_owned()),
    ] {
        args.extend([flag.into(), value.into()]);
    }
    args
}

/// The value of a metric in Prometheus' text format; of one with several label sets, the sum.
fn metric(page: &str, name: &str) -> Option<f64> {
    page.lines()
        .filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            // Not a longer name that begins alike.
            rest.starts_with(['{', ' ']).then_some(())?;
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        })
        .reduce(|sum, value| sum + value)
}

/// The lock-node program: as told, or beside this one.
pub(crate) fn lock_node_program(told: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match told {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()
            .context("where is this program?")?
            .with_file_name(Kind::LockNode.name()),
    };
    if !path.is_file() {
        let release = if cfg!(debug_assertions) { "" } else { " --release" };
        bail!(
            "there is no {}; build it with `cargo build{release} -p lock-node`, or name one with --lock-node",
            path.display()
        );
    }
    Ok(path)
}

/// The etcd program: as told, or on the PATH; `None` if there is none.
pub(crate) fn etcd_program(told: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    if let Some(path) = told {
        anyhow::ensure!(path.is_file(), "there is no {}", path.display());
        return Ok(Some(path.to_owned()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::split_paths(&path)
        .map(|dir| dir.join(Kind::Etcd.name()))
        .find(|candidate| candidate.is_file()))
}

/// The last word of the first line that the program prints for `--version`.
pub(crate) fn version(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default();
    Ok(first.rsplit(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name_with_and_without_labels() {
        let page = "# HELP leads 1 if it leads\n# TYPE leads gauge\nleads 1\nleads_long 7\n\
                    syncs_total{service=\"a b\"} 12\nsyncs_total{service=\"c\"} 30\n";
        assert_eq!(metric(page, "leads"), Some(1.0));
        assert_eq!(metric(page, "syncs_total"), Some(42.0));
        assert_eq!(metric(page, "missing"), None);
    }

    #[test]
    fn a_missing_lock_node_is_said_with_the_command_that_builds_it() {
        let error = lock_node_program(Some(Path::new("/nowhere/lock-node"))).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("cargo build") && text.contains("-p lock-node"),
            "{text}"
        );
    }
}
