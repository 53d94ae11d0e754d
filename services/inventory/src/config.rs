//! Flags and environment, and the plain values that they become.

use std::net::SocketAddr;
use std::time::Duration;

use lock_node::NodeConfig;
use lock_node::cli::EmbeddedNodeArgs;
use service_kit::{CommonArgs, Secret};
use ticketing_types::Strategy;

/// Sells what there is: events, holds and tickets
#[derive(Debug, clap::Parser)]
#[command(name = "inventory", version)]
pub struct Args {
    /// Flags of every service.
    #[command(flatten)]
    pub common: CommonArgs<8201>,

    /// Database of this service (sqlite://PATH or postgres://…); all instances share it
    #[arg(long, env = "DATABASE_URL", default_value = "sqlite://data/inventory.db")]
    pub database_url: String,

    /// How long a hold lasts when the request does not say, in milliseconds
    #[arg(long, env = "HOLD_TTL_MS", default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub hold_ttl_ms: u64,

    /// How long a hold waits for its lock, in milliseconds
    #[arg(long, env = "LOCK_WAIT_MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub lock_wait_ms: u64,

    /// How long this instance's locks outlive it, in milliseconds
    #[arg(long, env = "SESSION_TTL_MS", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(500..=300_000))]
    pub session_ttl_ms: u64,

    /// How often to look for holds whose time is over, in milliseconds
    #[arg(long, env = "EXPIRY_EVERY_MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub expiry_every_ms: u64,

    /// Flags of a lock node in this process.
    #[command(flatten)]
    pub node: EmbeddedNodeArgs,
}

impl Args {
    /// The values behind the flags.
    ///
    /// # Errors
    /// The flags of the embedded lock node do not fit together.
    pub fn into_config(self) -> anyhow::Result<Config> {
        Ok(Config {
            listen: self.common.listen,
            instance: self.common.instance_or("inventory"),
            database_url: self.database_url,
            default_strategy: self.common.strategy,
            lock_token: self.common.lock.token()?,
            lock_urls: self.common.lock.lock_urls,
            enable_faults: self.common.enable_faults,
            hold_ttl: Duration::from_millis(self.hold_ttl_ms),
            lock_wait: Duration::from_millis(self.lock_wait_ms),
            session_ttl: Duration::from_millis(self.session_ttl_ms),
            expiry_every: Duration::from_millis(self.expiry_every_ms),
            embedded_node: self.node.into_config(self.common.enable_faults)?,
        })
    }
}

/// Everything an instance is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its name in logs, metrics and the lock cluster: "inventory-1".
    pub instance: String,
    /// `sqlite://path` or `postgres://…`; the instances of a service share it.
    pub database_url: String,
    /// For requests without a `Lock-Strategy`.
    pub default_strategy: Strategy,
    /// The lock nodes' client URLs.
    pub lock_urls: Vec<String>,
    /// What the lock cluster wants of its clients, where it wants a token.
    pub lock_token: Option<Secret>,
    /// Whether faults may be injected.
    pub enable_faults: bool,
    /// How long a hold lasts when the request does not say.
    pub hold_ttl: Duration,
    /// How long a hold waits for its lock.
    pub lock_wait: Duration,
    /// How long this instance's locks outlive it.
    pub session_ttl: Duration,
    /// How often to look for holds whose time is over.
    pub expiry_every: Duration,
    /// A member of the lock cluster to host in this process.
    pub embedded_node: Option<NodeConfig>,
}

impl Config {
    /// The defaults of the flags, for an instance of this name over this database, listening on a free port.
    pub fn new(instance: impl Into<String>, database_url: impl Into<String>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            instance: instance.into(),
            database_url: database_url.into(),
            default_strategy: Strategy::Raft,
            lock_urls: Vec::new(),
            lock_token: None,
            enable_faults: false,
            hold_ttl: Duration::from_secs(60),
            lock_wait: Duration::from_secs(30),
            session_ttl: Duration::from_secs(5),
            expiry_every: Duration::from_millis(500),
            embedded_node: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn without_flags_an_instance_is_as_designed() {
        testkit::check_flags(Args::command());
        let config = Args::parse_from(["inventory"])
            .into_config()
            .expect("no flags always fit");
        assert_eq!(config.listen.to_string(), "127.0.0.1:8201");
        assert_eq!(
            (config.hold_ttl, config.lock_wait),
            (Duration::from_secs(60), Duration::from_secs(30))
        );
        assert!(config.embedded_node.is_none());
    }

    #[test]
    fn an_instance_can_host_a_member_of_the_lock_cluster() {
        let member = "1=127.0.0.1:8601,127.0.0.1:8501";
        let args = Args::parse_from(["inventory", "--embed-lock-node", "1", "--member", member]);
        let config = args.into_config().expect("they fit");
        assert_eq!(config.embedded_node.map(|node| node.id), Some(1));
    }
}
