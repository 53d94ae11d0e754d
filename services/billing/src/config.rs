//! What billing needs to know, as plain values, and the flags that say it.

use std::net::SocketAddr;
use std::time::Duration;

use lock_node::NodeConfig;
use lock_node::cli::EmbeddedNodeArgs;
use service_kit::{CommonArgs, Secret};
use ticketing_types::Strategy;

const GATEWAY_URL: &str = "http://127.0.0.1:8401";
const LOCK_WAIT_MS: u64 = 30_000;
const SESSION_TTL_MS: u64 = 5_000;
const SETTLE_AFTER_MS: u64 = 5_000;
const SETTLE_EVERY_MS: u64 = 500;

/// One instance of billing.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its name in logs, metrics, answers, and as the holder of locks.
    pub instance: String,
    /// `sqlite://path` or `postgres://…`, shared by all instances.
    pub database_url: String,
    /// The card gateway.
    pub gateway_urls: Vec<String>,
    /// Client URLs of the lock cluster's nodes.
    pub lock_urls: Vec<String>,
    /// What the lock cluster wants of its clients, where it wants a token.
    pub lock_token: Option<Secret>,
    /// For requests that name no strategy.
    pub default_strategy: Strategy,
    /// How long a request waits for a lock.
    pub lock_wait: Duration,
    /// How long the lock session outlives this process.
    pub session_ttl: Duration,
    /// How long a payment may stand in an in-between status before the worker asks again.
    pub settle_after: Duration,
    /// How often the worker looks.
    pub settle_every: Duration,
    /// Whether faults can be injected.
    pub enable_faults: bool,
    /// A member of the lock cluster to host in this process.
    pub embedded_node: Option<NodeConfig>,
}

impl Config {
    /// An instance as it is by default, on a free port, without a lock cluster.
    pub fn new(database_url: impl Into<String>, gateway_url: impl Into<String>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            instance: "billing-1".to_owned(),
            database_url: database_url.into(),
            gateway_urls: vec![gateway_url.into()],
            lock_urls: Vec::new(),
            lock_token: None,
            default_strategy: Strategy::Raft,
            lock_wait: Duration::from_millis(LOCK_WAIT_MS),
            session_ttl: Duration::from_millis(SESSION_TTL_MS),
            settle_after: Duration::from_millis(SETTLE_AFTER_MS),
            settle_every: Duration::from_millis(SETTLE_EVERY_MS),
            enable_faults: false,
            embedded_node: None,
        }
    }
}

/// Authorizes, captures, voids and refunds payments, once each.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "billing", version)]
pub struct Args {
    /// The flags that all services share
    #[command(flatten)]
    pub common: CommonArgs<8301>,

    /// Database, shared by all instances (sqlite://path or postgres://…; made when missing)
    #[arg(long, env = "DATABASE_URL", default_value = "sqlite://data/billing.db")]
    pub database_url: String,

    /// URLs of the card gateway, comma-separated
    #[arg(long, env = "GATEWAY_URLS", value_delimiter = ',', default_value = GATEWAY_URL)]
    pub gateway_urls: Vec<String>,

    /// How long a request waits for a lock, in milliseconds (at most 60000)
    #[arg(long, env = "LOCK_WAIT_MS", default_value_t = LOCK_WAIT_MS)]
    pub lock_wait_ms: u64,

    /// How long the lock session outlives this process, in milliseconds
    #[arg(long, env = "SESSION_TTL_MS", default_value_t = SESSION_TTL_MS)]
    pub session_ttl_ms: u64,

    /// How long a payment may stand in between before the gateway is asked again, in milliseconds
    #[arg(long, env = "SETTLE_AFTER_MS", default_value_t = SETTLE_AFTER_MS)]
    pub settle_after_ms: u64,

    /// How often payments left in between are looked for, in milliseconds
    #[arg(long, env = "SETTLE_EVERY_MS", default_value_t = SETTLE_EVERY_MS)]
    pub settle_every_ms: u64,

    /// The flags of a member of the lock cluster in this process
    #[command(flatten)]
    pub node: EmbeddedNodeArgs,
}

impl Args {
    /// The flags as plain values.
    ///
    /// # Errors
    /// The flags of the embedded lock node do not fit together.
    pub fn into_config(self) -> anyhow::Result<Config> {
        Ok(Config {
            listen: self.common.listen,
            instance: self.common.instance_or("billing"),
            database_url: self.database_url,
            gateway_urls: self.gateway_urls,
            lock_token: self.common.lock.token()?,
            lock_urls: self.common.lock.lock_urls,
            default_strategy: self.common.strategy,
            lock_wait: Duration::from_millis(self.lock_wait_ms),
            session_ttl: Duration::from_millis(self.session_ttl_ms),
            settle_after: Duration::from_millis(self.settle_after_ms),
            settle_every: Duration::from_millis(self.settle_every_ms),
            enable_faults: self.common.enable_faults,
            embedded_node: self.node.into_config(self.common.enable_faults)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn the_flags_fit_together_and_the_defaults_are_those_of_the_design() {
        testkit::check_flags(Args::command());
        let config = Args::parse_from(["billing"]).into_config().expect("no lock node");
        assert_eq!(config.listen.to_string(), "127.0.0.1:8301");
        assert_eq!(config.gateway_urls, [GATEWAY_URL]);
        assert_eq!(config.default_strategy, Strategy::Raft);
        assert!(config.embedded_node.is_none());
    }

    #[test]
    fn a_member_of_the_lock_cluster_can_be_hosted() {
        let member = "1=127.0.0.1:8601,127.0.0.1:8501";
        let args = Args::parse_from(["billing", "--embed-lock-node", "1", "--member", member]);
        assert_eq!(
            args.into_config()
                .expect("fits")
                .embedded_node
                .map(|node| node.id),
            Some(1)
        );
    }
}
