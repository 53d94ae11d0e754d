//! From signals to one token that everything watches.
//!
//! The first Ctrl-C or SIGTERM lets the token fall, and the process drains. A second one means "now": whoever
//! presses Ctrl-C twice has waited long enough.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit status after the second signal: 128 + SIGINT, as shells count.
const EXIT_IMPATIENT: i32 = 130;

/// A token that falls with the first Ctrl-C or SIGTERM.
pub fn on_signal() -> anyhow::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let token = CancellationToken::new();
    let fallen = token.clone();
    tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = interrupt.recv() => "Ctrl-C",
                _ = terminate.recv() => "SIGTERM",
            };
            if fallen.is_cancelled() {
                std::process::exit(EXIT_IMPATIENT);
            }
            tracing::info!("{name}: stopping");
            fallen.cancel();
        }
    });
    Ok(token)
}
