//! Where everybody is, as plain values, and the flags that say it.

use std::net::SocketAddr;
use std::time::Duration;

use service_kit::{LockArgs, LogFormat, Secret};

/// How often the instances are asked whether they are ready, in milliseconds.
const PROBE_EVERY_MS: u64 = 500;
/// How long an answer may take, in milliseconds: longer than the longest wait for a lock (60 s), so that the
/// one who knows what happened gets to say it.
const ANSWER_WITHIN_MS: u64 = 75_000;

/// One front door.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its name in logs, metrics and answers.
    pub instance: String,
    /// Base URLs of checkout's instances.
    pub checkout: Vec<String>,
    /// Base URLs of inventory's instances.
    pub inventory: Vec<String>,
    /// Base URLs of billing's instances.
    pub billing: Vec<String>,
    /// Base URL of the card gateway; the audit reads its ledger.
    pub gateway: String,
    /// Client URLs of the lock cluster's nodes.
    pub lock_nodes: Vec<String>,
    /// What the lock cluster wants of its clients, for the front door's own questions. Whoever asks through the front
    /// door shows a token of their own.
    pub lock_token: Option<Secret>,
    /// How often the instances are asked whether they are ready.
    pub probe_every: Duration,
    /// How long an answer may take before the front door says that it does not know.
    pub answer_within: Duration,
}

impl Default for Config {
    /// Everybody on this machine, on the usual ports.
    fn default() -> Self {
        let on = |ports: &[u16]| {
            ports
                .iter()
                .map(|port| format!("http://127.0.0.1:{port}"))
                .collect()
        };
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            instance: "boxoffice-1".to_owned(),
            checkout: on(&[8101, 8102]),
            inventory: on(&[8201, 8202]),
            billing: on(&[8301, 8302]),
            gateway: "http://127.0.0.1:8401".to_owned(),
            lock_nodes: on(&[8501, 8502, 8503]),
            lock_token: None,
            probe_every: Duration::from_millis(PROBE_EVERY_MS),
            answer_within: Duration::from_millis(ANSWER_WITHIN_MS),
        }
    }
}

/// The front door: the page, the API of all services, the audit and the rounds on one port.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "boxoffice", version)]
pub struct Args {
    /// Address to listen on (host:port; port 0 takes a free one)
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Name of this instance in logs, metrics and answers
    #[arg(long, env = "INSTANCE", default_value = "boxoffice-1")]
    pub instance: String,

    /// URLs of checkout's instances, comma-separated
    #[arg(
        long,
        env = "CHECKOUT_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8101,http://127.0.0.1:8102"
    )]
    pub checkout_urls: Vec<String>,

    /// URLs of inventory's instances, comma-separated
    #[arg(
        long,
        env = "INVENTORY_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8201,http://127.0.0.1:8202"
    )]
    pub inventory_urls: Vec<String>,

    /// URLs of billing's instances, comma-separated
    #[arg(
        long,
        env = "BILLING_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8301,http://127.0.0.1:8302"
    )]
    pub billing_urls: Vec<String>,

    /// URL of the card gateway
    #[arg(long, env = "GATEWAY_URL", default_value = "http://127.0.0.1:8401")]
    pub gateway_url: String,

    /// Where the lock cluster is
    #[command(flatten)]
    pub lock: LockArgs,

    /// How often instances are asked whether they are ready, in milliseconds
    #[arg(long, env = "PROBE_EVERY_MS", default_value_t = PROBE_EVERY_MS)]
    pub probe_every_ms: u64,

    /// How long an answer may take, in milliseconds
    #[arg(long, env = "ANSWER_WITHIN_MS", default_value_t = ANSWER_WITHIN_MS)]
    pub answer_within_ms: u64,

    /// How logs are written; what is logged is up to RUST_LOG
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

impl Args {
    /// The flags as plain values.
    ///
    /// # Errors
    /// The lock cluster's token cannot be read.
    pub fn into_config(self) -> anyhow::Result<Config> {
        Ok(Config {
            listen: self.listen,
            instance: self.instance,
            checkout: self.checkout_urls,
            inventory: self.inventory_urls,
            billing: self.billing_urls,
            gateway: self.gateway_url,
            lock_token: self.lock.token()?,
            lock_nodes: self.lock.lock_urls,
            probe_every: Duration::from_millis(self.probe_every_ms.max(50)),
            answer_within: Duration::from_millis(self.answer_within_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn without_flags_everybody_is_on_the_usual_ports() {
        testkit::check_flags(Args::command());
        let config = Args::parse_from(["boxoffice"]).into_config().expect("no token");
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    }
}
