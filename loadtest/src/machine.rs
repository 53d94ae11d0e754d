//! What a report must say for its numbers to mean anything: the machine and the versions.

use serde::{Deserialize, Serialize};
pub use service_kit::Machine;

/// What was tested and what tested it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// This project.
    pub last_ticket: String,
    /// `release` or `debug`: figures of a debug build mean nothing.
    pub build: String,
}

impl Versions {
    /// Of this build.
    pub fn of_this_build() -> Self {
        let build = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        Self {
            last_ticket: env!("CARGO_PKG_VERSION").to_owned(),
            build: build.to_owned(),
        }
    }
}
