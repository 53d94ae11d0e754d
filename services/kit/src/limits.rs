//! File descriptors. A thousand buyers are two thousand sockets in the all-in-one, and many shells still start
//! programs with a limit of 1,024.

/// What we ask for.
const NOFILE_WANTED: u64 = 65_536;
/// Below this a burst of a thousand buyers would run out.
const NOFILE_ENOUGH: u64 = 8_192;

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
