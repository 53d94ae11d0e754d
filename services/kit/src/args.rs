//! The flags that all services share. Each has an environment variable, a default and a unit.
//!
//! `PORT` is a parameter of the type, so that `--help` shows the real default of each service.

use std::net::SocketAddr;
use std::path::PathBuf;

use ticketing_types::Strategy;

use crate::Secret;

/// Environment variable with the token that the lock cluster wants of its clients, where no file is given.
pub const LOCK_CLIENT_TOKEN: &str = "LOCK_CLIENT_TOKEN";

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Flags of every service; flatten them into a service's own: `#[command(flatten)] common: CommonArgs<8201>`.
#[derive(Debug, Clone, clap::Args)]
pub struct CommonArgs<const PORT: u16> {
    /// Address to listen on (host:port; port 0 takes a free one)
    #[arg(long, env = "LISTEN", default_value_t = SocketAddr::from(([127, 0, 0, 1], PORT)))]
    pub listen: SocketAddr,

    /// Name of this instance in logs, metrics and answers [default: the service with -1]
    #[arg(long, env = "INSTANCE")]
    pub instance: Option<String>,

    /// Where the lock cluster is
    #[command(flatten)]
    pub lock: LockArgs,

    /// Strategy for requests that name none in `Lock-Strategy`
    #[arg(long, env = "STRATEGY", default_value = "raft", value_parser = parse_strategy)]
    pub strategy: Strategy,

    /// Let faults be injected (the `Fault` header and /v1/faults); never where money is real
    #[arg(long, env = "ENABLE_FAULTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub enable_faults: bool,

    /// How logs are written; what is logged is up to RUST_LOG
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

impl<const PORT: u16> CommonArgs<PORT> {
    /// The instance's name: as given, or else `<service>-1`.
    pub fn instance_or(&self, service: &str) -> String {
        self.instance.clone().unwrap_or_else(|| format!("{service}-1"))
    }
}

/// Flags of every client of the lock cluster.
#[derive(Debug, Clone, clap::Args)]
pub struct LockArgs {
    /// Client URLs of the lock cluster's nodes, comma-separated
    #[arg(
        long,
        env = "LOCK_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8501,http://127.0.0.1:8502,http://127.0.0.1:8503"
    )]
    pub lock_urls: Vec<String>,

    /// File with the token that the lock cluster wants of its clients (or the token itself in LOCK_CLIENT_TOKEN)
    /// [default: none]
    #[arg(long, env = "LOCK_CLIENT_TOKEN_FILE", value_name = "FILE")]
    lock_client_token_file: Option<PathBuf>,
}

impl LockArgs {
    /// The clients' token, if one is configured.
    ///
    /// # Errors
    /// The file cannot be read, or says nothing.
    pub fn token(&self) -> anyhow::Result<Option<Secret>> {
        Secret::read(self.lock_client_token_file.as_deref(), LOCK_CLIENT_TOKEN)
    }
}

/// For clap: the strategy, or a message with the known ones.
pub fn parse_strategy(text: &str) -> Result<Strategy, String> {
    text.parse()
        .map_err(|why: ticketing_types::Invalid| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Args {
        #[command(flatten)]
        common: CommonArgs<8201>,
    }

    #[test]
    fn the_defaults_are_those_of_the_design() {
        let Args { common } = Args::parse_from(["inventory"]);
        assert_eq!(common.listen.to_string(), "127.0.0.1:8201");
        assert_eq!(common.instance_or("inventory"), "inventory-1");
        assert_eq!(common.lock.lock_urls.len(), 3);
        assert_eq!(common.strategy, Strategy::Raft);
        assert!(!common.enable_faults);
    }

    #[test]
    fn an_unknown_strategy_is_refused_with_the_known_ones() {
        let error = Args::try_parse_from(["inventory", "--strategy", "mutex"])
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains("raft-unfenced"), "{error}");
    }
}
