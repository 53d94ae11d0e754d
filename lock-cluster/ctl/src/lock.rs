//! `lockctl lock NAME -- CMD…`: run a command for as long as a lock is held.
//!
//! The command learns what it holds from its environment: `LOCK_NAME`, `LOCK_FENCING_TOKEN`, `LOCK_SESSION`.
//! When the lock is lost the command is told to stop (SIGTERM) and killed [`GRACE`] later. That bound does not make
//! it safe by itself: whatever the command writes to should check the fencing token.
//!
//! The command gets a process group of its own, so that its children are killed with it; only when it reads from a
//! terminal does it stay in ours, because a terminal stops readers from other groups, and is then killed as a family.
//! Signals sent to `lockctl` are handed on, and `lockctl` ends when the command does. Two things no program can hand
//! on: after SIGKILL the command runs on, and the lock ends with the session; stopped (SIGSTOP) for longer than that,
//! `lockctl` stops the command as soon as it runs again.

use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use lock_client::{ClientConfig, Grant, LockClient};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::args::LockArgs;
use crate::family::Family;
use crate::signals::{Signals, has_a_key};

/// From the loss of the lock until a command that does not stop by itself is killed.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) async fn run(mut config: ClientConfig, args: LockArgs) -> anyhow::Result<ExitCode> {
    config.ttl = args.ttl;
    config.label = args.label.clone().unwrap_or_else(label);
    let mut signals = Signals::listen()?;
    let client = tokio::select! {
        client = LockClient::connect(config) => client?,
        signal = signals.next() => return Ok(ended_by(signal)),
    };
    let grant = tokio::select! {
        grant = client.acquire(&args.names, args.wait) => grant,
        signal = signals.next() => {
            // The acquire was dropped by now; closing gives its place in the queue back.
            client.close().await;
            return Ok(ended_by(signal));
        }
    };
    let grant = match grant {
        Ok(grant) => grant,
        Err(error) => {
            client.close().await;
            return Err(error).with_context(|| format!("locking {}", args.names.join(", ")));
        }
    };
    let code = hold(&grant, &args, &mut signals).await;
    // Closing the session releases, and says so before we exit.
    drop(grant);
    client.close().await;
    code
}

async fn hold(grant: &Grant, args: &LockArgs, signals: &mut Signals) -> anyhow::Result<ExitCode> {
    let own_group = !std::io::stdin().is_terminal();
    let mut command = Command::new(&args.command[0]);
    command
        .args(&args.command[1..])
        .env("LOCK_NAME", grant.names().join(","))
        .env("LOCK_FENCING_TOKEN", grant.fencing_token().to_string())
        .env("LOCK_SESSION", grant.session_id().to_string())
        .kill_on_drop(true);
    if own_group {
        command.process_group(0);
    }
    let mut child = match command.spawn() {
        Ok(child) => Running::new(child, own_group),
        Err(error) => {
            eprintln!("lockctl: {}: {error}", args.command[0].display());
            return Ok(ExitCode::from(if error.kind() == ErrorKind::NotFound {
                127
            } else {
                126
            }));
        }
    };
    loop {
        tokio::select! {
            status = child.child.wait() => return Ok(code_of(status?)),
            () = grant.lost() => {
                let why = if grant.is_broken() { "an administrator broke it" } else { "the session ended" };
                eprintln!("lockctl: the lock was lost ({why}); stopping the command");
                child.stop().await?;
                return Ok(ExitCode::from(70));
            }
            // A terminal sends what its keys mean to the whole group: a command that shares ours has it already.
            signal = signals.next() => if own_group || !has_a_key(signal) {
                child.signal(signal);
            },
        }
    }
}

/// The command while it runs.
struct Running {
    child: Child,
    /// Its process id, which is its group's as well if it has one of its own.
    pid: Option<Pid>,
    own_group: bool,
}

impl Running {
    fn new(child: Child, own_group: bool) -> Self {
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Self {
            child,
            pid,
            own_group,
        }
    }

    fn signal(&self, signal: Signal) {
        let Some(pid) = self.pid else { return };
        // It may have ended this moment; then there is nobody to tell.
        let _ = if self.own_group {
            kill_process_group(pid, signal)
        } else {
            kill_process(pid, signal)
        };
    }

    /// SIGTERM, and SIGKILL to whatever is left after [`GRACE`].
    async fn stop(&mut self) -> anyhow::Result<()> {
        if self.own_group {
            self.signal(Signal::TERM);
            // A group lives on with its last member: children of a command that has ended are killed, too.
            let _ = timeout(GRACE, self.child.wait()).await;
            self.signal(Signal::KILL);
        } else if let Some(pid) = self.pid {
            // Looked up while the command is there: when it has ended, nobody knows whose its children were.
            let family = Family::of(pid);
            family.signal(Signal::TERM);
            if timeout(GRACE, self.child.wait()).await.is_err() {
                Family::of(pid).signal(Signal::KILL);
            }
            family.signal(Signal::KILL);
        }
        self.child.wait().await?;
        Ok(())
    }
}

fn code_of(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// The exit code of a process that a signal has ended.
fn ended_by(signal: Signal) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal.as_raw()).unwrap_or(1))
}

fn label() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user = std::env::var("USER").unwrap_or_else(|_| "lockctl".to_owned());
    let label = format!("{user}@{} pid {}", host.trim(), std::process::id());
    label.chars().take(64).collect()
}
