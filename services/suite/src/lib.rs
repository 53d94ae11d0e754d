//! Everything in one process: `cargo run` starts three services, two instances each, over a lock cluster of
//! three members, a card gateway, and one front door.
//!
//! Nothing is short-cut. Every instance listens on a loopback port of its own, opens its own connections to its
//! service's database, and talks to the others over HTTP, just as it would as a process of its own; the programs
//! `inventory`, `billing`, … start the very same code. The lock cluster's members live in the first instance of
//! each service (`--embed-lock-node` in the programs), and speak to each other over TCP.
//!
//! What one process cannot show is the death of one of its parts: for `kill -9` of a single service, run the
//! programs apart, or use compose.
//!
//! | module | what it owns |
//! |---|---|
//! | [`cli`] | the flags of `last-ticket` |
//! | [`config`] | ports, folders and database URLs of all parts |
//! | `parts` | the parts' own configurations, drawn from ours |
//! | `secret` | the secret that the lock nodes prove to each other, made once per data folder |
//! | `ready` | when a purchase would work |

pub mod cli;
pub mod config;
mod parts;
mod ready;
mod secret;

use std::time::Duration;

use anyhow::Context as _;
use futures::future::BoxFuture;
use service_kit::Running;
use tokio_util::sync::CancellationToken;

pub use config::{Ports, SuiteConfig};

/// How long a start may take until a purchase would work. Mostly one election.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The parts that host a member of the lock cluster: the first instance of each service.
const LOCK_HOSTS: [&str; 3] = ["inventory-1", "billing-1", "checkout-1"];

/// The whole suite, running in this process.
#[derive(Debug)]
pub struct Suite {
    front_door: String,
    shutdown: CancellationToken,
    parts: Vec<(String, Running)>,
}

impl Suite {
    /// Starts all parts and waits until a purchase would work.
    ///
    /// # Errors
    /// A part that could not start (a port taken, a folder not writable, a database out of reach), by name.
    /// What had been started by then is stopped again.
    pub fn start(config: SuiteConfig) -> BoxFuture<'static, anyhow::Result<Self>> {
        Box::pin(Self::start_or_stop(config))
    }

    async fn start_or_stop(config: SuiteConfig) -> anyhow::Result<Self> {
        let mut suite = Self {
            front_door: format!("http://127.0.0.1:{}", config.ports.front_door),
            shutdown: CancellationToken::new(),
            parts: Vec::new(),
        };
        match suite.start_parts(&config).await {
            Ok(()) => Ok(suite),
            Err(error) => {
                // The first error is the one worth telling.
                if let Err(later) = suite.stop().await {
                    tracing::warn!(error = format!("{later:#}"), "stopping after a failed start");
                }
                Err(error)
            }
        }
    }

    /// The base URL of the front door.
    pub fn front_door(&self) -> String {
        self.front_door.clone()
    }

    /// Stops all parts: requests in flight may finish, then everything ends, within 5 s.
    ///
    /// Those that host a member of the lock cluster end last, and together: the others close their sessions
    /// through them, and a cluster that lost its majority could close none.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        let (hosts, guests): (Vec<_>, Vec<_>) = self
            .parts
            .into_iter()
            .partition(|(name, _)| LOCK_HOSTS.contains(&name.as_str()));
        let mut result = Ok(());
        for group in [guests, hosts] {
            let ends = group.into_iter().map(|(name, part)| async move {
                part.join()
                    .await
                    .with_context(|| format!("{name} did not stop well"))
            });
            result = futures::future::join_all(ends)
                .await
                .into_iter()
                .fold(result, Result::and);
        }
        result
    }

    /// The order is who needs whom. The first instance of each service makes its database and hosts a member of
    /// the lock cluster; the second finds both there.
    async fn start_parts(&mut self, config: &SuiteConfig) -> anyhow::Result<()> {
        std::fs::create_dir_all(&config.data_dir)
            .with_context(|| format!("cannot make the data folder {}", config.data_dir.display()))?;
        let secret = secret::peer_secret(&config.data_dir)?;

        let gateway = card_gateway::start(parts::gateway(config), self.shutdown.clone()).await;
        self.keep("card-gateway", gateway)?;
        for instance in 0..2 {
            let started =
                inventory::start(parts::inventory(config, instance, &secret), self.shutdown.clone()).await;
            self.keep(&format!("inventory-{}", instance + 1), started)?;
            let started =
                billing::start(parts::billing(config, instance, &secret), self.shutdown.clone()).await;
            self.keep(&format!("billing-{}", instance + 1), started)?;
            let started =
                checkout::start(parts::checkout(config, instance, &secret), self.shutdown.clone()).await;
            self.keep(&format!("checkout-{}", instance + 1), started)?;
        }
        let front_door = boxoffice::start(parts::boxoffice(config), self.shutdown.clone()).await;
        self.keep("front door", front_door)?;
        ready::wait(&self.front_door, READY_WITHIN).await
    }

    fn keep(&mut self, name: &str, started: anyhow::Result<Running>) -> anyhow::Result<()> {
        let part = started.with_context(|| format!("{name} cannot start"))?;
        self.parts.push((name.to_owned(), part));
        Ok(())
    }
}
