//! The command line. Everything has an environment variable, too; a token comes from a file or the environment,
//! never from an argument that every user of the machine can read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args as ClapArgs, Parser, Subcommand};
use lock_client::ClientConfig;

/// The lock cluster from a shell.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Print JSON instead of tables
    #[arg(long, global = true, env = "LOCKCTL_JSON", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done · 1 refused or not there · 2 wrong usage, or a value out of range · 69 the cluster did not \
answer · 70 the lock was lost and the command killed (SIGTERM, SIGKILL 0.5 s later) · 75 the lock was not granted in time · 126, 127 the command \
could not be run · otherwise the command's own (128 + n if signal n ended it)";

/// Which cluster.
#[derive(Debug, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// Base URLs of the nodes' client ports
    #[arg(
        long = "url",
        global = true,
        env = "LOCK_URLS",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8501,http://127.0.0.1:8502,http://127.0.0.1:8503"
    )]
    urls: Vec<String>,
    /// File with the bearer token for administrative calls (else the environment variable LOCK_ADMIN_TOKEN)
    #[arg(long, global = true, env = "LOCK_ADMIN_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// File with the bearer token that the nodes want of every client (else the environment variable LOCK_CLIENT_TOKEN);
    /// an administrator's token does as well
    #[arg(long, global = true, env = "LOCK_CLIENT_TOKEN_FILE")]
    client_token_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding a lock
    Lock(LockArgs),
    /// List the locks that are held or waited for
    List {
        /// Only names that begin with this
        #[arg(long, env = "LOCKCTL_PREFIX", default_value = "")]
        prefix: String,
        /// At most this many locks
        #[arg(long, env = "LOCKCTL_LIMIT", default_value_t = 100)]
        limit: usize,
    },
    /// Show one lock: who holds it, who waits
    Show {
        /// The lock's name
        name: String,
    },
    /// Take a lock away from its holder
    Break {
        /// The lock's name
        name: String,
        /// The token of the grant to break; if another one holds by now, nothing happens
        #[arg(long, env = "LOCKCTL_FENCING_TOKEN")]
        fencing_token: u64,
    },
    /// Print events as they happen
    Watch {
        /// Begin at this log index instead of now
        #[arg(long, env = "LOCKCTL_FROM")]
        from: Option<u64>,
    },
    /// Show how every node sees the cluster
    Status,
    /// Copy the state into a file, to keep elsewhere
    Backup {
        /// The file, which is replaced when the copy is whole
        file: PathBuf,
    },
    /// Have a new cluster go on from a backup: fencing tokens above all that the lost one granted; its sessions and
    /// locks are not brought back
    Restore {
        /// The file
        file: PathBuf,
        /// Tokens go on above this one, at least the backup's own [default: the backup's plus 2^32, for those that
        /// were granted after it was made]
        #[arg(long, env = "LOCKCTL_TOKEN_FLOOR")]
        token_floor: Option<u64>,
    },
    /// Show or change who belongs to the cluster
    Members {
        #[command(subcommand)]
        command: Option<MembersCommand>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum MembersCommand {
    /// List the members
    List,
    /// Add a member, which must be running (lock-node without --bootstrap, see its --help); asking again is no error
    Add {
        /// Its id
        id: u64,
        /// host:port where the other members reach it
        #[arg(long, env = "LOCKCTL_PEER_ADDR")]
        peer_addr: String,
        /// host:port where clients reach it
        #[arg(long, env = "LOCKCTL_CLIENT_ADDR")]
        client_addr: String,
        /// Only receive the log, do not vote
        #[arg(long, env = "LOCKCTL_LEARNER", value_parser = clap::builder::FalseyValueParser::new())]
        learner: bool,
    },
    /// Make a voter of a member that only receives the log
    Promote {
        /// Its id
        id: u64,
    },
    /// Remove a member, running or not; the leader hands over first
    Remove {
        /// Its id
        id: u64,
    },
}

/// `lockctl lock NAME -- CMD…`
#[derive(Debug, ClapArgs)]
pub(crate) struct LockArgs {
    /// The locks to hold, together: 1 to 16 names
    #[arg(required = true, num_args = 1..=16)]
    pub(crate) names: Vec<String>,
    /// How long the lock outlives this process if it is killed: 500ms to 300s
    #[arg(long, env = "LOCKCTL_TTL", default_value = "5s", value_parser = duration)]
    pub(crate) ttl: Duration,
    /// How long to wait for the lock: 0 to 60s
    #[arg(long, env = "LOCKCTL_WAIT", default_value = "60s", value_parser = duration)]
    pub(crate) wait: Duration,
    /// Who holds, for people who look at the cluster [default: user, host and process id]
    #[arg(long, env = "LOCKCTL_LABEL")]
    pub(crate) label: Option<String>,
    /// The command, and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

impl ClusterArgs {
    /// An administrator is a client, too, so that one token is enough for either.
    pub(crate) fn client_config(&self) -> anyhow::Result<ClientConfig> {
        let mut config = ClientConfig::new(&self.urls);
        config.token = match token(self.token_file.as_deref(), "LOCK_ADMIN_TOKEN")? {
            Some(admin) => Some(admin),
            None => token(self.client_token_file.as_deref(), "LOCK_CLIENT_TOKEN")?,
        };
        Ok(config)
    }
}

/// The token in the file, or else in the environment.
fn token(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<String>> {
    let token = match file {
        Some(file) => {
            Some(std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?)
        }
        None => std::env::var(variable).ok(),
    };
    let token = token.map(|token| token.trim().to_owned());
    Ok(token.filter(|token| !token.is_empty()))
}

/// `250ms`, `5s`, `1m`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number
        .parse()
        .map_err(|_| format!("{text:?} is no duration: write 250ms, 5s or 1m"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "" | "s" => Ok(Duration::from_secs(number)),
        "m" => number
            .checked_mul(60)
            .map(Duration::from_secs)
            .ok_or_else(|| format!("{text} is too long")),
        _ => Err(format!("{unit:?} is no unit of time: write ms, s or m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        testkit::check_flags(Args::command());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "-1s", "1h", "1.5s", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
