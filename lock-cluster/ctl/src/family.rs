//! A command and all that it has started, for when they are no process group of their own.
//!
//! Each process is held by a descriptor (pidfd): its id may be somebody else's by the time it is to be killed. Who was
//! started later, by one whose parent had ended already, is missed.

use rustix::process::{Pid, Signal};

#[cfg(target_os = "linux")]
pub(crate) struct Family(Vec<rustix::fd::OwnedFd>);

#[cfg(target_os = "linux")]
impl Family {
    /// The process, and its descendants as of now.
    pub(crate) fn of(head: Pid) -> Self {
        use rustix::process::{PidfdFlags, pidfd_open};
        let processes = processes();
        let mut members = vec![head];
        let mut next = 0;
        while let Some(&parent) = members.get(next) {
            next += 1;
            let born = processes
                .iter()
                .filter(|(_, of)| *of == parent.as_raw_nonzero().get());
            members.extend(born.filter_map(|(pid, _)| Pid::from_raw(*pid)));
        }
        // One that cannot be opened has ended.
        let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok();
        Self(members.into_iter().filter_map(open).collect())
    }

    /// Sends it to all that have not ended.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in &self.0 {
            let _ = rustix::process::pidfd_send_signal(process, signal);
        }
    }
}

/// All processes, each with its parent.
#[cfg(target_os = "linux")]
fn processes() -> Vec<(i32, i32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // `pid (name) state parent …`; a name may contain anything, parentheses too.
        let (_, behind_name) = stat.rsplit_once(')')?;
        Some((pid, behind_name.split_whitespace().nth(1)?.parse().ok()?))
    })
    .collect()
}

/// Elsewhere only the command itself is known.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Family(Pid);

#[cfg(not(target_os = "linux"))]
impl Family {
    pub(crate) fn of(head: Pid) -> Self {
        Self(head)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process(self.0, signal);
    }
}
