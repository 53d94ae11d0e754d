//! Where everything is: ports, folders, database URLs. Pure values; `parts` turns them into what each part wants.

use std::path::{Path, PathBuf};

use lock_node::{Member, Secret};
use ticketing_types::Strategy;

/// The loopback ports of all parts (DESIGN §4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// The front door.
    pub front_door: u16,
    /// Two checkouts.
    pub checkout: [u16; 2],
    /// Two inventories.
    pub inventory: [u16; 2],
    /// Two billings.
    pub billing: [u16; 2],
    /// The card gateway.
    pub gateway: u16,
    /// The lock nodes, for clients.
    pub lock_clients: [u16; 3],
    /// The lock nodes, for each other.
    pub lock_peers: [u16; 3],
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            front_door: 8080,
            checkout: [8101, 8102],
            inventory: [8201, 8202],
            billing: [8301, 8302],
            gateway: 8401,
            lock_clients: [8501, 8502, 8503],
            lock_peers: [8601, 8602, 8603],
        }
    }
}

impl Ports {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// Ports that nobody listens on now, below the range from which outgoing connections take theirs.
    pub fn free() -> anyhow::Result<Self> {
        Ok(Self::deal(service_kit::free_ports(Self::COUNT)?))
    }

    /// Deals these ports out.
    ///
    /// # Panics
    /// There are not [`Ports::COUNT`] of them.
    pub fn deal(ports: Vec<u16>) -> Self {
        let mut ports = ports.into_iter();
        let mut next = || ports.next().expect("one for each part");
        Self {
            front_door: next(),
            checkout: [next(), next()],
            inventory: [next(), next()],
            billing: [next(), next()],
            gateway: next(),
            lock_clients: [next(), next(), next()],
            lock_peers: [next(), next(), next()],
        }
    }
}

/// Everything the suite is started with.
#[derive(Debug, Clone)]
pub struct SuiteConfig {
    /// Folder of the databases and of the lock cluster's logs.
    pub data_dir: PathBuf,
    /// Who listens where.
    pub ports: Ports,
    /// PostgreSQL server; `None` for SQLite files in the data folder.
    pub database_url: Option<String>,
    /// Strategy for requests that name none.
    pub strategy: Strategy,
    /// Whether faults may be injected.
    pub faults: bool,
    /// What the lock cluster wants of its clients; the services and the front door show it.
    pub lock_token: Option<Secret>,
}

impl SuiteConfig {
    /// A suite on SQLite in this folder, on free ports.
    pub fn on_free_ports(data_dir: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            data_dir: data_dir.to_owned(),
            ports: Ports::free()?,
            database_url: None,
            strategy: Strategy::Raft,
            faults: true,
            lock_token: None,
        })
    }

    /// The database of a service.
    pub(crate) fn database(&self, service: &str) -> String {
        match &self.database_url {
            Some(server) => service_db::per_service_url(server, service),
            None => format!(
                "sqlite://{}",
                self.data_dir.join(format!("{service}.db")).display()
            ),
        }
    }

    /// The members of the lock cluster.
    pub(crate) fn members(&self) -> Vec<Member> {
        let ports = self.ports.lock_peers.iter().zip(&self.ports.lock_clients);
        (1..)
            .zip(ports)
            .map(|(id, (peer, client))| Member {
                id,
                peer_addr: format!("127.0.0.1:{peer}"),
                client_addr: format!("127.0.0.1:{client}"),
            })
            .collect()
    }
}

/// Base URLs of instances on these ports.
pub(crate) fn urls(ports: &[u16]) -> Vec<String> {
    ports
        .iter()
        .map(|port| format!("http://127.0.0.1:{port}"))
        .collect()
}
