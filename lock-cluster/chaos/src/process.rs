//! A real program in a real process, with its output in a file.
//!
//! Signals go through `rustix`: a system call of our own would need unsafe code, and a `kill` command per signal would
//! be late on a busy machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A running program. Dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a command. What it prints is added to the file.
    ///
    /// # Errors
    /// If the file cannot be written or the program cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(log);
        let output = output.with_context(|| format!("opening {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// The kernel's number for it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits for the end.
    pub fn kill(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGSTOP: it freezes, and connections to it stay open.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: it goes on where it was.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        // One that has ended meanwhile needs no signal; it was not waited for, so the id is nobody else's yet.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The path of another program of this workspace: beside this one, or beside the folder that tests live in.
///
/// # Errors
/// When it was not built; building it from here could build half the workspace with other features.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("a program knows its own path")?;
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    match found.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("{name} was not built; build it first: cargo build --bin {name}"),
    }
}
