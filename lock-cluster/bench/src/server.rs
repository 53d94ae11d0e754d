//! A server in a child process: started, killed, started again, watched.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::proc::{self, CpuTime};

/// Lines of a server's output that are shown when it has ended by itself.
const LINES_SHOWN: usize = 12;

/// A running server. Dropped, it is killed: nothing outlives the measurement.
#[derive(Debug)]
pub(crate) struct Server {
    program: PathBuf,
    args: Vec<OsString>,
    output: PathBuf,
    child: Child,
}

impl Server {
    /// Starts a program; what it prints goes to a file.
    pub(crate) fn start(program: &Path, args: Vec<OsString>, output: PathBuf) -> anyhow::Result<Self> {
        Ok(Self {
            child: spawn(program, &args, &output)?,
            program: program.to_owned(),
            args,
            output,
        })
    }

    /// `kill -9`, and waits until the process is gone.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        // An error says that it has ended already.
        let _ = self.child.kill();
        self.child.wait().context("waiting for a killed server")?;
        Ok(())
    }

    /// Starts it again as it was started.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.child = spawn(&self.program, &self.args, &self.output)?;
        Ok(())
    }

    /// Fails with the end of its output if it has ended by itself.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let Some(status) = self.child.try_wait().context("asking after a server")? else {
            return Ok(());
        };
        let text = std::fs::read_to_string(&self.output).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
        anyhow::bail!("{} has ended ({status}):\n{end}", self.program.display())
    }

    pub(crate) fn cpu(&self) -> anyhow::Result<CpuTime> {
        CpuTime::of(self.child.id())
    }

    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        proc::resident_bytes(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, and there is nobody left to tell.
        let _ = self.kill();
    }
}

fn spawn(program: &Path, args: &[OsString], output: &Path) -> anyhow::Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(output)
        .with_context(|| format!("opening {}", output.display()))?;
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("one file for both outputs")?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}
