//! The flags of `last-ticket`.

use std::path::PathBuf;

use service_kit::args::{LOCK_CLIENT_TOKEN, parse_strategy};
use service_kit::{LogFormat, Secret};
use ticketing_types::Strategy;

use crate::config::{Ports, SuiteConfig};

/// Last Ticket: three services, a lock cluster and a front door, all in one process
///
/// Prints `ready http://127.0.0.1:8080` when the lock cluster has a leader and a purchase would work. Starting it
/// again goes on with the same data. Ctrl-C stops it.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "last-ticket", version)]
pub struct Args {
    /// Folder of the databases and of the lock cluster's logs (made when missing)
    #[arg(long, env = "DATA_DIR", default_value = ".last-ticket")]
    pub data_dir: PathBuf,

    /// Port of the front door on 127.0.0.1
    #[arg(long, env = "PORT", default_value_t = Ports::default().front_door)]
    pub port: u16,

    /// Ports of the checkout instances on 127.0.0.1
    #[arg(long, env = "CHECKOUT_PORTS", value_parser = ports::<2>, default_value = "8101,8102")]
    pub checkout_ports: [u16; 2],

    /// Ports of the inventory instances on 127.0.0.1
    #[arg(long, env = "INVENTORY_PORTS", value_parser = ports::<2>, default_value = "8201,8202")]
    pub inventory_ports: [u16; 2],

    /// Ports of the billing instances on 127.0.0.1
    #[arg(long, env = "BILLING_PORTS", value_parser = ports::<2>, default_value = "8301,8302")]
    pub billing_ports: [u16; 2],

    /// Port of the card gateway on 127.0.0.1
    #[arg(long, env = "GATEWAY_PORT", default_value_t = Ports::default().gateway)]
    pub gateway_port: u16,

    /// Ports of the lock nodes for clients on 127.0.0.1
    #[arg(long, env = "LOCK_CLIENT_PORTS", value_parser = ports::<3>, default_value = "8501,8502,8503")]
    pub lock_client_ports: [u16; 3],

    /// Ports of the lock nodes for each other on 127.0.0.1
    #[arg(long, env = "LOCK_PEER_PORTS", value_parser = ports::<3>, default_value = "8601,8602,8603")]
    pub lock_peer_ports: [u16; 3],

    /// PostgreSQL server instead of SQLite files: postgres://user@host:port (a database per service, made when missing)
    #[arg(long, env = "DATABASE_URL")]
    pub database_url: Option<String>,

    /// Strategy for requests that name none in `Lock-Strategy`
    #[arg(long, env = "STRATEGY", default_value = "raft", value_parser = parse_strategy)]
    pub strategy: Strategy,

    /// Refuse injected faults (this is a demo: they are allowed by default)
    #[arg(long, env = "NO_FAULTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_faults: bool,

    /// File with a token (or the token itself in LOCK_CLIENT_TOKEN) that the lock cluster then wants of its clients; the
    /// services and the front door show it [default: none is wanted]
    #[arg(long, env = "LOCK_CLIENT_TOKEN_FILE", value_name = "FILE")]
    pub lock_client_token_file: Option<PathBuf>,

    /// How logs are written; what is logged is up to RUST_LOG
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// `N` port numbers, comma-separated.
fn ports<const N: usize>(text: &str) -> Result<[u16; N], String> {
    let numbers: Result<Vec<u16>, _> = text.split(',').map(|port| port.trim().parse()).collect();
    numbers
        .ok()
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| format!("{N} port numbers are wanted, comma-separated"))
}

impl Args {
    /// The flags as plain values.
    ///
    /// # Errors
    /// The clients' token cannot be read.
    pub fn into_config(self) -> anyhow::Result<SuiteConfig> {
        Ok(SuiteConfig {
            lock_token: Secret::read(self.lock_client_token_file.as_deref(), LOCK_CLIENT_TOKEN)?,
            data_dir: self.data_dir,
            ports: Ports {
                front_door: self.port,
                checkout: self.checkout_ports,
                inventory: self.inventory_ports,
                billing: self.billing_ports,
                gateway: self.gateway_port,
                lock_clients: self.lock_client_ports,
                lock_peers: self.lock_peer_ports,
            },
            database_url: self.database_url,
            strategy: self.strategy,
            faults: !self.no_faults,
        })
    }

    /// What to try next, for the person who just started it.
    pub fn hints(&self) -> String {
        let door = format!("http://127.0.0.1:{}", self.port);
        format!(
            "\n  the page        {door}/\n  the API         {door}/docs\n  \
             a race, live    curl -s -X POST {door}/v1/rounds -H 'content-type: application/json' \
             -d '{{\"strategy\":\"none\",\"capacity\":10,\"buyers\":100}}'\n  \
             side by side    cargo run --release -p loadtest -- compare --target {door}\n  \
             stop            Ctrl-C\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn the_defaults_are_those_of_the_design() {
        testkit::check_flags(Args::command());
        let config = Args::parse_from(["last-ticket"]).into_config().unwrap();
        assert_eq!(config.ports, Ports::default());
        assert_eq!(config.strategy, Strategy::Raft);
        assert!(config.faults);
    }

    #[test]
    fn ports_come_in_the_right_number() {
        assert!(Args::try_parse_from(["last-ticket", "--checkout-ports", "1"]).is_err());
        assert!(Args::try_parse_from(["last-ticket", "--checkout-ports", "1,x"]).is_err());
        assert!(Args::try_parse_from(["last-ticket", "--checkout-ports", "1,2"]).is_ok());
    }
}
