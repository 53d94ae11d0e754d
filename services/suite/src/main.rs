//! The program `last-ticket`: the whole suite in one process.

use clap::Parser as _;
use last_ticket::{Suite, cli::Args};
use service_kit::{limits, shutdown, telemetry};

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    telemetry::init_quiet(args.log_format);
    limits::raise_nofile();
    let stop = shutdown::on_signal()?;
    let hints = args.hints();
    let config = args.into_config()?;
    let suite = tokio::select! {
        started = Suite::start(config) => started?,
        () = stop.cancelled() => return Ok(()),
    };
    println!("ready {}", suite.front_door());
    println!("{hints}");
    stop.cancelled().await;
    println!("stopping");
    suite.stop().await
}
