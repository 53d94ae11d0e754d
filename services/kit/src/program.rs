//! The frame of every service program: logs, file limits, signals, start, `ready`, join.

use std::net::SocketAddr;

use tokio_util::sync::CancellationToken;

use crate::{args::LogFormat, limits, server::Running, shutdown, telemetry};

/// Runs a service until a signal ends it. Prints `ready http://<address>` on stdout once it serves.
///
/// ```no_run
/// # async fn start(_: CancellationToken) -> anyhow::Result<service_kit::Running> { unimplemented!() }
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main] async fn main() -> anyhow::Result<()> {
/// service_kit::program::run(service_kit::LogFormat::Auto, |shutdown| start(shutdown)).await
/// # }
/// ```
pub async fn run<F, Fut>(log_format: LogFormat, start: F) -> anyhow::Result<()>
where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = anyhow::Result<Running>>,
{
    telemetry::init(log_format);
    limits::raise_nofile();
    let shutdown = shutdown::on_signal()?;
    let running = start(shutdown.clone()).await?;
    announce(running.addr);
    running.join().await
}

/// The line that whoever started the program waits for.
#[allow(clippy::print_stdout)]
pub fn announce(addr: SocketAddr) {
    println!("ready http://{addr}");
}
