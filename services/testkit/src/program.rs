//! [`Program`]: a real program in a real process, for tests that kill, stop and restart.
//!
//! Its output goes to the test's own, prefixed with its name, so that a failed test shows what everybody said.
//! Dropped, it is killed; a test that fails leaves nothing behind.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::watch,
};

/// A running program.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    ready: watch::Receiver<Option<String>>,
}

/// The path of a program of this workspace, beside the test's own.
///
/// # Panics
/// When it was not built; building it from here could build half the workspace with other features.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/<profile>/deps/it-0123456789abcdef
    let profile = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("tests live in target/<profile>/deps");
    let path = profile.join(name);
    assert!(
        path.exists(),
        "{} is missing: build it first (cargo build --bin {name})",
        path.display()
    );
    path
}

impl Program {
    /// Starts a program of this workspace under a name for its output ("inventory-2").
    pub fn start<A: AsRef<OsStr>>(name: &str, program: &str, args: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(binary(program));
        command.args(args);
        Self::spawn(name, command).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Starts any command.
    pub fn spawn(name: &str, mut command: Command) -> anyhow::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let (found, ready) = watch::channel(None);
        let stdout = child.stdout.take().context("stdout is a pipe")?;
        let stderr = child.stderr.take().context("stderr is a pipe")?;
        tokio::spawn(relay(name.to_owned(), stdout, Some(found)));
        tokio::spawn(relay(name.to_owned(), stderr, None));
        Ok(Self {
            name: name.to_owned(),
            child,
            ready,
        })
    }

    /// Waits for the line `ready <url>` on stdout and returns the URL.
    ///
    /// # Panics
    /// When it does not come in time, or the program ends first.
    pub async fn ready(&mut self, within: Duration) -> String {
        let name = &self.name;
        let line = tokio::time::timeout(within, self.ready.wait_for(Option::is_some)).await;
        let line = line.unwrap_or_else(|_| panic!("{name} was not ready within {within:?}"));
        let line = line.unwrap_or_else(|_| panic!("{name} ended before it was ready"));
        line.clone().expect("waited for it")
    }

    /// The process id. None once it was waited for.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// `kill -9`, and waits for the end.
    pub async fn kill(&mut self) {
        self.child
            .kill()
            .await
            .unwrap_or_else(|error| panic!("cannot kill {}: {error}", self.name));
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn terminate(&mut self, within: Duration) -> ExitStatus {
        self.signal("TERM").await;
        self.wait(within).await
    }

    /// SIGINT, as Ctrl-C sends it, and waits for the end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn interrupt(&mut self, within: Duration) -> ExitStatus {
        self.signal("INT").await;
        self.wait(within).await
    }

    /// SIGSTOP: the program freezes, connections to it stay open.
    pub async fn stop(&self) {
        self.signal("STOP").await;
    }

    /// SIGCONT: it goes on where it was.
    pub async fn resume(&self) {
        self.signal("CONT").await;
    }

    /// Waits for the program to end by itself.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn wait(&mut self, within: Duration) -> ExitStatus {
        let name = &self.name;
        let status = tokio::time::timeout(within, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("{name} did not end within {within:?}"));
        status.unwrap_or_else(|error| panic!("cannot wait for {name}: {error}"))
    }

    async fn signal(&self, signal: &str) {
        send(self.pid(), signal)
            .await
            .unwrap_or_else(|error| panic!("{}: {error:#}", self.name));
    }
}

/// Through the `kill` command: a system call would need unsafe code.
async fn send(pid: Option<u32>, signal: &str) -> anyhow::Result<()> {
    let pid = pid.context("has ended already")?;
    let status = Command::new("kill")
        .arg(format!("-{signal}"))
        .arg(pid.to_string())
        .status()
        .await?;
    ensure!(status.success(), "cannot send SIG{signal} to {pid}");
    Ok(())
}

/// Copies a program's output to the test's, line by line, and notices `ready …`.
async fn relay(name: String, output: impl AsyncRead + Unpin, ready: Option<watch::Sender<Option<String>>>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let (Some(found), Some(url)) = (&ready, line.strip_prefix("ready ")) {
            let _ = found.send(Some(url.trim().to_owned())); // nobody may wait for it
        }
        eprintln!("[{name}] {line}");
    }
}
