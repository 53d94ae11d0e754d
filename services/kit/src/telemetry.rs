//! Logs: for people on a terminal, as JSON lines for machines. Always on stderr; stdout belongs to what the
//! program has to say (`ready http://…`).

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::args::LogFormat;

/// What a service logs when `RUST_LOG` says nothing. openraft tells its whole life at info, and at warn each try to reach
/// a member that is down, thirty a second, and each vote that it does not get: those are left out, and the lock node says
/// once that somebody is away.
pub const DEFAULT_FILTER: &str = "info,openraft=warn,openraft::core=error,openraft::replication=error,\
    openraft::engine::handler::replication_handler=error,chunked_wal=warn,sqlx=warn,hyper=warn";
/// What a program logs that talks to a person on a terminal. openraft's warnings are what an election looks
/// like from inside.
pub const QUIET_FILTER: &str = "warn,openraft=off";

/// Starts logging for a service. Does nothing when it was started before (in tests, many services share a
/// process).
pub fn init(format: LogFormat) {
    init_with(format, DEFAULT_FILTER);
}

/// Starts logging for a program whose own words a person is to see, such as the all-in-one.
pub fn init_quiet(format: LogFormat) {
    init_with(format, QUIET_FILTER);
}

fn init_with(format: LogFormat, default_filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let for_people = match format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stderr().is_terminal(),
    };
    let registry = tracing_subscriber::registry().with(filter);
    let result = if for_people {
        let colours = std::io::stderr().is_terminal();
        registry
            .with(
                fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(colours)
                    .with_target(false),
            )
            .try_init()
    } else {
        registry
            .with(
                fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_writer(std::io::stderr),
            )
            .try_init()
    };
    if result.is_err() {
        tracing::debug!("logging was started before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_read() {
        // `EnvFilter::new` passes over what it cannot read.
        for filter in [DEFAULT_FILTER, QUIET_FILTER] {
            assert!(EnvFilter::try_new(filter).is_ok(), "{filter}");
        }
    }
}
