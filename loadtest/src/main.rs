//! The program `loadtest`.

use std::process::ExitCode;

use clap::Parser as _;
use loadtest::cli::{Args, Command};
use service_kit::{LogFormat, limits, telemetry};

/// Usage or environment: nothing could be measured (DESIGN §8).
const EXIT_USAGE: u8 = 3;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let help = !error.use_stderr();
            // A closed pipe is no reason to fail over a help text.
            let _ = error.print();
            return ExitCode::from(if help { 0 } else { EXIT_USAGE });
        }
    };
    telemetry::init_quiet(LogFormat::Auto);
    limits::raise_nofile();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("cannot start the runtime")),
    };
    let Command::Compare(compare) = args.command;
    match runtime.block_on(loadtest::compare::run(&compare)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => fail(&error),
    }
}

#[allow(clippy::print_stderr)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("loadtest: {error:#}");
    ExitCode::from(EXIT_USAGE)
}
