//! Every service as a program of its own, and no lock node among them: checkout, inventory and billing host the
//! members of the lock cluster in their first instances.

use std::collections::BTreeMap;
use std::path::Path;

use last_ticket::Ports;
use testkit::{Program, binary, wait_ready};
use tokio::process::Command;

use super::program::READY_WITHIN;
use super::{Door, free_ports};

/// A program of the suite: the service and the number of its instance.
pub(crate) type Name = (&'static str, usize);

/// In the order in which they are started: whoever makes a database, and whoever hosts a lock member, first.
const ALL: [Name; 8] = [
    ("card-gateway", 1),
    ("inventory", 1),
    ("billing", 1),
    ("checkout", 1),
    ("inventory", 2),
    ("billing", 2),
    ("checkout", 2),
    ("boxoffice", 1),
];

/// Inventory's locks outlive it by this. Shorter than by default, because tests wait for it to pass.
const LOCK_SESSION_TTL_MS: &str = "2000";

/// Which inventory a checkout asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wiring {
    /// Any, as it is by default.
    Any,
    /// The one of its own number, so that a test knows who sells what.
    Own,
}

/// All programs of the suite.
pub(crate) struct Programs {
    pub(crate) door: Door,
    wiring: Wiring,
    running: BTreeMap<Name, Program>,
    dir: tempfile::TempDir,
}

impl Programs {
    /// Starts all of them, and waits until a purchase would work.
    pub(crate) async fn start(wiring: Wiring) -> Self {
        let mut programs = Self {
            door: Door::at(&free_ports()),
            wiring,
            running: BTreeMap::new(),
            dir: tempfile::tempdir().unwrap(),
        };
        for name in ALL {
            programs.restart(name).await;
        }
        let front_door = programs.door.shop.base().to_owned();
        wait_ready(READY_WITHIN, &front_door).await;
        programs
    }

    /// Starts one, again or for the first time, and waits until it listens.
    pub(crate) async fn restart(&mut self, name: Name) {
        let label = format!("{}-{}", name.0, name.1);
        let mut program = Program::spawn(&label, self.command(name)).unwrap();
        program.ready(READY_WITHIN).await;
        self.running.insert(name, program);
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self, name: Name) {
        let mut program = self.running.remove(&name).expect("it runs");
        program.kill().await;
    }

    /// One that runs.
    pub(crate) fn get(&self, name: Name) -> &Program {
        &self.running[&name]
    }

    /// Who hosts the leader of the lock cluster.
    pub(crate) async fn host_of_lock_leader(&self) -> Name {
        let leader = self.door.lock_leader().await;
        *ALL.iter()
            .find(|&&name| lock_member(name) == Some(leader))
            .expect("a member has a host")
    }

    fn command(&self, name: Name) -> Command {
        let (ports, dir) = (self.door.ports(), self.dir.path());
        let (service, instance) = name;
        let at = instance - 1;
        let mut command = Command::new(binary(service));
        command.args(["--instance", &format!("{service}-{instance}")]);
        let inventories = match self.wiring {
            Wiring::Any => urls(&ports.inventory),
            Wiring::Own => urls(&ports.inventory[at..=at]),
        };
        let listen = match service {
            "card-gateway" => {
                command.args(["--database-url", &database(dir, "gateway")]);
                ports.gateway
            }
            "boxoffice" => {
                command.args(["--checkout-urls", &urls(&ports.checkout)]);
                command.args(["--inventory-urls", &urls(&ports.inventory)]);
                command.args(["--billing-urls", &urls(&ports.billing)]);
                command.args(["--gateway-url", &urls(&[ports.gateway])]);
                command.args(["--lock-urls", &urls(&ports.lock_clients)]);
                ports.front_door
            }
            service => {
                command.args(["--database-url", &database(dir, service)]);
                command.args(["--lock-urls", &urls(&ports.lock_clients), "--enable-faults"]);
                match service {
                    "inventory" => {
                        command.args(["--session-ttl-ms", LOCK_SESSION_TTL_MS]);
                        ports.inventory[at]
                    }
                    "billing" => {
                        command.args(["--gateway-urls", &urls(&[ports.gateway])]);
                        ports.billing[at]
                    }
                    _ => {
                        command.args(["--billing-urls", &urls(&ports.billing)]);
                        command.args(["--inventory-urls", &inventories]);
                        ports.checkout[at]
                    }
                }
            }
        };
        command.args(["--listen", &format!("127.0.0.1:{listen}")]);
        if let Some(id) = lock_member(name) {
            command.args(["--embed-lock-node", &id.to_string(), "--bootstrap"]);
            command
                .args(members(ports))
                .arg("--data-dir")
                .arg(dir.join(format!("lock-node-{id}")));
            command.env("LOCK_NODE_PEER_SECRET", "known to the members of this test");
        }
        command.env(
            "RUST_LOG",
            std::env::var("RUST_LOG").unwrap_or("warn,openraft=error".to_owned()),
        );
        command
    }
}

/// The member of the lock cluster that a program hosts.
fn lock_member(name: Name) -> Option<u64> {
    match name {
        ("inventory", 1) => Some(1),
        ("billing", 1) => Some(2),
        ("checkout", 1) => Some(3),
        _ => None,
    }
}

fn members(ports: &Ports) -> Vec<String> {
    let addresses = ports.lock_peers.iter().zip(&ports.lock_clients);
    let member = |(id, (peer, client)): (u64, (&u16, &u16))| {
        [
            "--member".to_owned(),
            format!("{id}=127.0.0.1:{peer},127.0.0.1:{client}"),
        ]
    };
    (1..).zip(addresses).flat_map(member).collect()
}

fn database(dir: &Path, service: &str) -> String {
    format!("sqlite://{}", dir.join(format!("{service}.db")).display())
}

fn urls(ports: &[u16]) -> String {
    ports
        .iter()
        .map(|port| format!("http://127.0.0.1:{port}"))
        .collect::<Vec<_>>()
        .join(",")
}
