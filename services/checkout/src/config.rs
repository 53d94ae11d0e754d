//! What checkout needs to know, as plain values, and the flags that say it.

use std::net::SocketAddr;
use std::time::Duration;

use lock_node::NodeConfig;
use lock_node::cli::EmbeddedNodeArgs;
use service_kit::{CommonArgs, LogFormat, Secret};
use ticketing_types::{HoldTtlMs, Strategy};

const PORT: u16 = 8101;

const LOCK_WAIT_MS: u64 = 30_000;
const SESSION_TTL_MS: u64 = 5_000;
const CALL_TIMEOUT_MS: u64 = 5_000;
const HOLD_TTL_MS: u64 = 60_000;
const BUDGET_MS: u64 = 15_000;
const RECOVERY_STALE_MS: u64 = 5_000;
const RECOVERY_EVERY_MS: u64 = 500;
const RECOVERY_PARALLEL: usize = 64;

/// One checkout instance.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its name in logs, metrics and answers: "checkout-1".
    pub instance: String,
    /// `sqlite://path` or `postgres://…`; both instances over the same one.
    pub database_url: String,
    /// For requests that name no strategy.
    pub default_strategy: Strategy,
    /// The lock nodes' client URLs.
    pub lock_urls: Vec<String>,
    /// What the lock cluster wants of its clients, where it wants a token.
    pub lock_token: Option<Secret>,
    /// How long the session with the lock cluster outlives this process.
    pub session_ttl: Duration,
    /// Inventory's base URLs, all instances.
    pub inventory_urls: Vec<String>,
    /// Billing's base URLs, all instances.
    pub billing_urls: Vec<String>,
    /// How long a purchase waits for a lock.
    pub lock_wait: Duration,
    /// How long a call to another service may take that waits for no contended lock.
    pub call_timeout: Duration,
    /// How long seats are held for a purchase.
    pub hold_ttl: HoldTtlMs,
    /// How long a request waits for its purchase, beyond the wait for locks, before it is answered 202.
    pub budget: Duration,
    /// How long a purchase may be without a sign of life before somebody else goes on with it.
    pub recovery_stale: Duration,
    /// How often unfinished purchases are looked for.
    pub recovery_every: Duration,
    /// How many unfinished purchases are driven at once.
    pub recovery_parallel: usize,
    /// Whether faults can be injected.
    pub enable_faults: bool,
    /// A member of the lock cluster to host in this process.
    pub embedded_node: Option<NodeConfig>,
}

impl Config {
    /// An instance as it is by default, on a free port.
    pub fn new(
        database_url: impl Into<String>,
        inventory_urls: Vec<String>,
        billing_urls: Vec<String>,
        lock_urls: Vec<String>,
    ) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            instance: "checkout-1".to_owned(),
            database_url: database_url.into(),
            default_strategy: Strategy::Raft,
            lock_urls,
            lock_token: None,
            session_ttl: Duration::from_millis(SESSION_TTL_MS),
            inventory_urls,
            billing_urls,
            lock_wait: Duration::from_millis(LOCK_WAIT_MS),
            call_timeout: Duration::from_millis(CALL_TIMEOUT_MS),
            hold_ttl: HoldTtlMs::try_from(HOLD_TTL_MS).expect("one minute is in range"),
            budget: Duration::from_millis(BUDGET_MS),
            recovery_stale: Duration::from_millis(RECOVERY_STALE_MS),
            recovery_every: Duration::from_millis(RECOVERY_EVERY_MS),
            recovery_parallel: RECOVERY_PARALLEL,
            enable_faults: false,
            embedded_node: None,
        }
    }
}

/// Buys tickets: a saga over inventory and billing, finished without the client's help.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "checkout", version)]
pub struct Args {
    #[command(flatten)]
    common: CommonArgs<PORT>,

    /// Database of the purchases (sqlite://path or postgres://…; made when missing)
    #[arg(long, env = "DATABASE_URL", default_value = "sqlite://data/checkout.db")]
    database_url: String,

    /// Base URLs of inventory's instances, comma-separated
    #[arg(
        long,
        env = "INVENTORY_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8201,http://127.0.0.1:8202"
    )]
    inventory_urls: Vec<String>,

    /// Base URLs of billing's instances, comma-separated
    #[arg(
        long,
        env = "BILLING_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8301,http://127.0.0.1:8302"
    )]
    billing_urls: Vec<String>,

    /// How long a purchase waits for a lock, in milliseconds (at most 60000)
    #[arg(long, env = "LOCK_WAIT_MS", default_value_t = LOCK_WAIT_MS, value_parser = clap::value_parser!(u64).range(..=60_000))]
    lock_wait_ms: u64,

    /// How long this process's lock session outlives it, in milliseconds
    #[arg(long, env = "SESSION_TTL_MS", default_value_t = SESSION_TTL_MS, value_parser = clap::value_parser!(u64).range(500..=300_000))]
    session_ttl_ms: u64,

    /// How long a call to another service may take that waits for no contended lock, in milliseconds
    #[arg(long, env = "CALL_TIMEOUT_MS", default_value_t = CALL_TIMEOUT_MS)]
    call_timeout_ms: u64,

    /// How long seats are held for a purchase, in milliseconds (1 to 3600000)
    #[arg(long, env = "HOLD_TTL_MS", default_value_t = HOLD_TTL_MS, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    hold_ttl_ms: u64,

    /// How long a request waits for its purchase, beyond the wait for locks, before it is answered 202, in milliseconds
    #[arg(long, env = "PURCHASE_BUDGET_MS", default_value_t = BUDGET_MS)]
    purchase_budget_ms: u64,

    /// How long a purchase may be without a sign of life before somebody else goes on with it, in milliseconds
    #[arg(long, env = "RECOVERY_STALE_MS", default_value_t = RECOVERY_STALE_MS, value_parser = clap::value_parser!(u64).range(100..))]
    recovery_stale_ms: u64,

    /// How often unfinished purchases are looked for, in milliseconds
    #[arg(long, env = "RECOVERY_EVERY_MS", default_value_t = RECOVERY_EVERY_MS, value_parser = clap::value_parser!(u64).range(10..))]
    recovery_every_ms: u64,

    /// How many unfinished purchases are driven at once
    #[arg(long, env = "RECOVERY_PARALLEL", default_value_t = RECOVERY_PARALLEL)]
    recovery_parallel: usize,

    #[command(flatten)]
    node: EmbeddedNodeArgs,
}

impl Args {
    /// How logs are written.
    pub fn log_format(&self) -> LogFormat {
        self.common.log_format
    }

    /// The flags as plain values.
    ///
    /// # Errors
    /// A sentence that says which flags do not fit together.
    pub fn into_config(self) -> anyhow::Result<Config> {
        Ok(Config {
            listen: self.common.listen,
            instance: self.common.instance_or("checkout"),
            database_url: self.database_url,
            default_strategy: self.common.strategy,
            lock_token: self.common.lock.token()?,
            lock_urls: self.common.lock.lock_urls,
            session_ttl: Duration::from_millis(self.session_ttl_ms),
            inventory_urls: self.inventory_urls,
            billing_urls: self.billing_urls,
            lock_wait: Duration::from_millis(self.lock_wait_ms),
            call_timeout: Duration::from_millis(self.call_timeout_ms),
            hold_ttl: HoldTtlMs::try_from(self.hold_ttl_ms)?,
            budget: Duration::from_millis(self.purchase_budget_ms),
            recovery_stale: Duration::from_millis(self.recovery_stale_ms),
            recovery_every: Duration::from_millis(self.recovery_every_ms),
            recovery_parallel: self.recovery_parallel.max(1),
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
    fn without_flags_an_instance_is_as_designed() {
        testkit::check_flags(Args::command());
        let config = Args::parse_from(["checkout"])
            .into_config()
            .expect("no flags always fit");
        assert_eq!(config.listen.to_string(), "127.0.0.1:8101");
        assert_eq!((config.lock_urls.len(), config.inventory_urls.len()), (3, 2));
        assert!(config.embedded_node.is_none());
    }
}
