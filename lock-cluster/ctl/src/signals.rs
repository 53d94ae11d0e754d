//! What other processes may tell this one, and what it is to do with it: hand it on to the command it runs.
//!
//! Every signal that asks a program to do something, and whose default is to end it. One that was left out would end
//! `lockctl` alone: the command would run on, and the lock would not outlive the session's time to live.
//!
//! But a signal that whoever started us has said to ignore stays ignored, by us and by the command: that is all that
//! `nohup` does, and a shell does it with SIGINT and SIGQUIT for what it starts in the background. To listen to one would
//! put a handler in place of that word, and the command would be started without it.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// Listens from its making on.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        let kinds = [
            (Signal::INT, SignalKind::interrupt()),
            (Signal::TERM, SignalKind::terminate()),
            (Signal::HUP, SignalKind::hangup()),
            (Signal::QUIT, SignalKind::quit()),
            (Signal::USR1, SignalKind::user_defined1()),
            (Signal::USR2, SignalKind::user_defined2()),
        ];
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        let heard = kinds.into_iter().filter(|(name, _)| !is_in(ignored, *name));
        let listening = heard.map(|(name, kind)| Ok((name, signal(kind)?)));
        listening.collect::<io::Result<_>>().map(Self)
    }

    /// The next one. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let mut names = self.0.iter_mut();
            let came = names.find_map(|(name, comes)| comes.poll_recv(cx).is_ready().then_some(*name));
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Whether a key of the terminal sends it, to the whole process group in front.
pub(crate) fn has_a_key(signal: Signal) -> bool {
    signal == Signal::INT || signal == Signal::QUIT
}

/// The set of signals that a process ignores, as Linux tells it of each (proc(5)); none where nothing is told.
fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}

/// Signal 1 is the lowest bit.
fn is_in(set: u64, signal: Signal) -> bool {
    set >> (signal.as_raw() - 1) & 1 == 1
}
