//! `lockctl`: the lock cluster from a shell.
//!
//! ```text
//! lockctl lock backup/nightly --wait 30s -- ./backup.sh    # run it while holding the lock
//! lockctl list                                             # who holds, who waits
//! lockctl show backup/nightly
//! lockctl break backup/nightly --fencing-token 17          # take it from that holder, and nobody else
//! lockctl watch                                            # events as they happen
//! lockctl status                                           # every node's view
//! lockctl members list|add|promote|remove
//! lockctl backup FILE                                      # the whole state, to keep elsewhere
//! lockctl restore FILE                                     # a new cluster goes on above the lost one's tokens
//! ```
//!
//! Tables for people, `--json` for scripts. What goes wrong goes to standard error.
//!
//! # Exit codes
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | refused, or not there |
//! | 2 | wrong usage, or a value out of range |
//! | 69 | the cluster did not answer |
//! | 70 | the lock was lost while the command ran; the command was killed |
//! | 75 | the lock was not granted in time |
//! | 126, 127 | the command could not be run, or was not found |
//! | other | `lock` passes the command's own code through; 128 + n if signal n ended it |

mod args;
mod backup;
mod family;
mod lock;
mod members;
mod out;
mod show;
mod signals;
mod table;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use lock_client::{ClusterClient, LockError};

use args::{Args, Command};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(args).await {
        Ok(code) => code,
        // As `cat` ends when its reader has gone, by SIGPIPE.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(128 + 13),
        Err(error) => {
            eprintln!("lockctl: {error:#}");
            exit_code(&error)
        }
    }
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.cluster.client_config()?;
    let json = args.json;
    if let Command::Lock(lock) = args.command {
        return lock::run(config, lock).await;
    }
    let cluster = ClusterClient::new(config)?;
    match args.command {
        Command::Lock(_) => unreachable!("answered above: it needs a session, the others do not"),
        Command::List { prefix, limit } => show::list(&cluster, &prefix, limit, json).await,
        Command::Show { name } => show::show(&cluster, &name, json).await,
        Command::Break { name, fencing_token } => {
            show::break_lock(&cluster, &name, fencing_token, json).await
        }
        Command::Watch { from } => watch::run(&cluster, from, json).await,
        Command::Status => show::status(&cluster, json).await,
        Command::Backup { file } => backup::backup(&cluster, &file, json).await,
        Command::Restore { file, token_floor } => backup::restore(&cluster, &file, token_floor, json).await,
        Command::Members { command } => members::run(&cluster, command, json).await,
    }
}

/// Scripts tell "try again" from "give up" by these.
fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<LockError>() {
        Some(LockError::Held | LockError::WaitTimeout) => ExitCode::from(75),
        Some(LockError::Unavailable { .. }) => ExitCode::from(69),
        Some(LockError::SessionLost) => ExitCode::from(70),
        Some(LockError::Invalid { slug, .. }) if OUT_OF_RANGE.contains(&slug.as_str()) => ExitCode::from(2),
        Some(LockError::NotFound { .. } | LockError::Invalid { .. }) | None => ExitCode::FAILURE,
    }
}

/// How the client and the cluster call a value that can never be right.
const OUT_OF_RANGE: [&str; 3] = ["invalid-request", "bad-url", "no-nodes"];

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
