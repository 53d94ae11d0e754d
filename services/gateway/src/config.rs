//! What the gateway needs to know, as plain values, and the flags that say it.

use std::net::SocketAddr;
use std::time::Duration;

use service_kit::LogFormat;

/// How late `card_slow` answers, in milliseconds: later than billing waits (1 s).
const LATE_MS: u64 = 1500;

/// One gateway.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its name in logs, metrics and answers.
    pub instance: String,
    /// `sqlite://path` or `postgres://…`.
    pub database_url: String,
    /// How late `card_slow` answers.
    pub late: Duration,
    /// Whether faults can be injected.
    pub enable_faults: bool,
}

impl Config {
    /// A gateway as it is by default, on a free port.
    pub fn new(database_url: impl Into<String>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            instance: "gateway-1".to_owned(),
            database_url: database_url.into(),
            late: Duration::from_millis(LATE_MS),
            enable_faults: false,
        }
    }
}

/// Stands in for a card processor: its own ledger, latency and faults.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "card-gateway", version)]
pub struct Args {
    /// Address to listen on (host:port; port 0 takes a free one)
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:8401")]
    pub listen: SocketAddr,

    /// Name of this instance in logs, metrics and answers
    #[arg(long, env = "INSTANCE", default_value = "gateway-1")]
    pub instance: String,

    /// Database of the ledger (sqlite://path or postgres://…; made when missing)
    #[arg(long, env = "DATABASE_URL", default_value = "sqlite://data/gateway.db")]
    pub database_url: String,

    /// How late card_slow answers, in milliseconds
    #[arg(long, env = "LATE_MS", default_value_t = LATE_MS)]
    pub late_ms: u64,

    /// Let faults be injected (the `Fault` header and /v1/faults); never where money is real
    #[arg(long, env = "ENABLE_FAULTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub enable_faults: bool,

    /// How logs are written; what is logged is up to RUST_LOG
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

impl Args {
    /// The flags as plain values.
    pub fn into_config(self) -> Config {
        Config {
            listen: self.listen,
            instance: self.instance,
            database_url: self.database_url,
            late: Duration::from_millis(self.late_ms),
            enable_faults: self.enable_faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn the_flags_fit_together_and_the_defaults_are_those_of_the_design() {
        testkit::check_flags(Args::command());
        let config = Args::parse_from(["card-gateway"]).into_config();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8401");
        assert!(!config.enable_faults);
    }
}
