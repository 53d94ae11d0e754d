//! What no fault excuses: a node that ends by itself, and a panic, which ends one task and is easily missed.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{MutexGuard, PoisonError};

use rustix::process::Signal;

use super::{Cluster, Machine};

impl Cluster {
    /// What nodes did that no fault excuses: they ended by themselves, or panicked.
    pub fn misdeeds(&self) -> Vec<String> {
        for at in self.all() {
            self.bury(at, &mut self.machine(at));
        }
        let mut misdeeds = self.deaths().clone();
        for at in self.all() {
            let log = std::fs::read(self.log(at)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            misdeeds.extend(panics(&log).map(|line| format!("node {}: {line}", at + 1)));
        }
        misdeeds
    }

    /// If the node's process has ended by itself: takes it away, and notes how it ended.
    pub(super) fn bury(&self, at: usize, machine: &mut Machine) -> Option<ExitStatus> {
        let status = machine.process.as_mut()?.ended()?;
        machine.process = None;
        if !is_asked_for(status) {
            self.deaths().push(format!("node {} ended: {status}", at + 1));
        }
        Some(status)
    }

    fn deaths(&self) -> MutexGuard<'_, Vec<String>> {
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a fault point ends a node like this: it aborts.
fn is_asked_for(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::ABORT.as_raw())
}

/// The lines of a log that tell of a panic.
fn panics(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| line.contains("panicked at"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_abort_is_asked_for() {
        let aborted = ExitStatus::from_raw(Signal::ABORT.as_raw());
        assert!(is_asked_for(aborted));
        let failed = ExitStatus::from_raw(1 << 8);
        let crashed = ExitStatus::from_raw(Signal::SEGV.as_raw());
        assert!(!is_asked_for(failed) && !is_asked_for(crashed));
        assert!(!is_asked_for(ExitStatus::default()), "nor is a good end");
    }

    #[test]
    fn a_panic_is_seen_in_the_log() {
        let log = "INFO all is well\nthread 'tokio' panicked at src/x.rs:1:1:\nINFO the others go on";
        assert_eq!(panics(log).count(), 1);
        assert_eq!(panics("INFO all is well").count(), 0);
    }
}
