//! What a measurement must say about the machine it was made on for its numbers to mean anything.

use serde::{Deserialize, Serialize};

/// The machine that a program runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's own name for itself.
    pub cpu: String,
    /// Threads it runs at once.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Operating system and kernel.
    pub os: String,
}

impl Machine {
    /// Reads it from the operating system; what cannot be read is "unknown".
    pub fn describe() -> Self {
        let field = |file: &str, key: &str| {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory_kib = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_kib.unwrap_or(0) / 1024,
            os: format!("{} {}", std::env::consts::OS, kernel.trim()),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} × {}, {} MiB, {}",
            self.cores, self.cpu, self.memory_mib, self.os
        )
    }
}
