//! The program around the library: flags in, `ready http://…` out, until a signal ends it.

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = inventory::Args::parse();
    let log_format = args.common.log_format;
    let config = args.into_config()?;
    service_kit::program::run(log_format, |shutdown| inventory::start(config, shutdown)).await
}
