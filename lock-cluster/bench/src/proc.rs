//! What the kernel knows about a process and about the disk, read from `/proc`.

use std::io::Write as _;
use std::ops::{Add, Sub};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Writes of [`sync_ms`].
const SYNCS: usize = 101;

/// Processor time that a process, or several, have been charged with since their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub(crate) struct CpuTime(Duration);

impl CpuTime {
    /// Of one process: its own time and the kernel's on its behalf, in all its threads.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let file = format!("/proc/{pid}/stat");
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
        let ticks = ticks(&text).with_context(|| format!("{file} says {text:?}"))?;
        Ok(Self(
            Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?,
        ))
    }

    /// In microseconds.
    pub(crate) fn us(self) -> f64 {
        self.0.as_secs_f64() * 1e6
    }
}

impl Add for CpuTime {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self(self.0 + more.0)
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self(self.0.saturating_sub(before.0))
    }
}

/// `utime` and `stime` of a stat line (proc_pid_stat(5), fields 14 and 15). The second field is the program's name
/// in brackets and may contain anything, so counting begins behind the last bracket.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(user + kernel)
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> anyhow::Result<u64> {
    let file = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {file}"))?;
    let kib = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .split_whitespace()
                .next()?
                .parse::<u64>()
                .ok()
        })
        .with_context(|| format!("{file} has no VmRSS"))?;
    Ok(kib * 1024)
}

/// The type of the file system that `path` is on, or "unknown".
pub(crate) fn file_system(path: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file_system_of(&path, &mounts).unwrap_or("unknown").to_owned()
}

/// The innermost mount point that contains the path; of several on one point the last covers the others.
fn file_system_of<'a>(path: &Path, mounts: &'a str) -> Option<&'a str> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (_device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
            path.starts_with(point).then_some((point.len(), kind))
        })
        .max_by_key(|(len, _)| *len)
        .map(|(_, kind)| kind)
}

/// How long a small write to this folder takes until it is durable: the median of many, in milliseconds.
///
/// Every acquire and every release waits for at least one of these, in any system that means what it says.
pub(crate) fn sync_ms(dir: &Path) -> anyhow::Result<f64> {
    let mut file = tempfile::NamedTempFile::new_in(dir).context("making a file to measure the disk with")?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&[7; 256])?;
        file.as_file().sync_data()?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(crate::figures::median(&took))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_move_the_fields() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 150 9 9 20 0 4 0 100";
        assert_eq!(ticks(stat), Some(400));
        assert_eq!(ticks("nothing"), None);
    }

    #[test]
    fn this_process_has_memory_and_its_time_grows() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).unwrap() > 100_000);
        let before = CpuTime::of(pid).unwrap();
        while CpuTime::of(pid).unwrap() <= before {
            std::hint::black_box((0..10_000).sum::<u64>());
        }
    }

    #[test]
    fn the_innermost_mount_decides() {
        let mounts = "a / ext4 rw 0 0\nb /tmp tmpfs rw 0 0\nc /tmp/deep xfs rw 0 0\n";
        let of = |path: &str| file_system_of(Path::new(path), mounts);
        assert_eq!(of("/var/x"), Some("ext4"));
        assert_eq!(of("/tmp/x"), Some("tmpfs"));
        assert_eq!(of("/tmp/deep/x"), Some("xfs"));
        assert_eq!(of("/tmpfoo"), Some("ext4"));
    }
}
