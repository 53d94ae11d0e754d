//! File descriptors. A thousand buyers are two thousand sockets in the all-in-one, and many shells still start
//! programs with a limit of 1,024.

/// What we ask for.
const NOFILE_WANTED: u64 = 65_536;
/// Below this a burst of a thousand buyers would run out.
const NOFILE_ENOUGH: u64 = 8_192;

/// Connections that one port takes, where open files allow it.
const CONNECTIONS_MAX: u64 = 16_384;
/// However few files may be open.
const CONNECTIONS_MIN: u64 = 64;

/// Connections that one port may have: a quarter of the files that may be open, for there are other ports, the
/// connections that this process opens itself, and its files.
pub fn connections_max() -> usize {
    let files = rlimit::Resource::NOFILE.get_soft().unwrap_or(NOFILE_WANTED);
    let connections = (files / 4).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
    usize::try_from(connections).expect("a small number")
}

/// Raises the limit of open files as far as the system lets us, and warns when that is not far.
pub fn raise_nofile() {
    match rlimit::increase_nofile_limit(NOFILE_WANTED) {
        Ok(limit) if limit >= NOFILE_ENOUGH => tracing::debug!(limit, "open files"),
        Ok(limit) => tracing::warn!(
            limit,
            "few files may be open at once; large bursts may be refused"
        ),
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}
