//! The program `boxoffice`: one front door until a signal ends it.

use boxoffice::{Args, start};
use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let log_format = args.log_format;
    let config = args.into_config()?;
    service_kit::program::run(log_format, |shutdown| start(config, shutdown)).await
}
