//! Which disk a member has: how a member that lost its memory is told from one that was away.
//!
//! Raft rests on what members have promised and written down. A member that comes back under its old id on an empty
//! disk has forgotten its votes and the entries it acknowledged; together with one that lags it can elect a leader that
//! lacks what was committed, and locks are granted twice. So a data directory is given a name of its own, drawn when it
//! is first used; the membership in the log records each member's; and every connection between members begins with it
//! (`peer/handshake.rs`). A member that shows another one than the log records is refused, and stops.
//!
//! The name is in a file of the data directory beside the log it vouches for, so that it is lost with it:
//!
//! ```text
//! lock-node 1
//! member 3
//! disk 5d0b9c1e-7b1c-4c3e-9d63-6c1b4f1b2f4a
//! log begun
//! ```
//!
//! The last line is added once the log is there: from then on a directory without one is no member's any more, however
//! its log came to be removed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The name of one data directory, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskId(Uuid);

const FILE: &str = "identity";
const BEING_WRITTEN: &str = "identity.new";
/// Changes when anything in the directory does that an older program could not read.
const FORMAT: &str = "lock-node 1";
const LOG: &str = "log";
const LOG_BEGUN: &str = "log begun";

impl DiskId {
    /// The name of `dir`, which is `member`'s; given now if nothing is in it yet.
    ///
    /// # Errors
    /// The directory is another member's, was written by another version, or has a log and no name.
    pub fn of_directory(dir: &Path, member: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        match fs::read_to_string(dir.join(FILE)) {
            Ok(text) => {
                let (disk, begun) = parse(&text, member)?;
                if begun && !has_files(&dir.join(LOG)) {
                    return Err(wrong(
                        "its log is gone, and with it what this member voted and acknowledged. Remove the member, and \
                         add it under a new id with an empty directory",
                    ));
                }
                Ok(disk)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if dir.join(LOG).exists() || dir.join("snapshots").exists() {
                    return Err(wrong(
                        "it has a log and no identity: an earlier version wrote it, or a part of it is lost. Start \
                         with an empty directory; in a cluster that goes on, under a new id",
                    ));
                }
                let drawn = Self(Uuid::new_v4());
                write(dir, &drawn.text(member))?;
                Ok(drawn)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that the log of `dir` is there, for good.
    ///
    /// # Errors
    /// The disk's.
    pub fn log_begun(&self, dir: &Path, member: u64) -> io::Result<()> {
        let text = format!("{}{LOG_BEGUN}\n", self.text(member));
        match fs::read_to_string(dir.join(FILE))? == text {
            true => Ok(()),
            false => write(dir, &text),
        }
    }

    fn text(&self, member: u64) -> String {
        format!("{FORMAT}\nmember {member}\ndisk {self}\n")
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    #[cfg(test)]
    pub(crate) fn drawn() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name, and whether the log was begun.
fn parse(text: &str, member: u64) -> io::Result<(DiskId, bool)> {
    let mut lines = text.lines();
    if lines.next() != Some(FORMAT) {
        return Err(wrong(
            "its identity was written by another version of this program",
        ));
    }
    let mut value_of = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
    let owner = value_of("member").and_then(|id| id.parse::<u64>().ok());
    let disk = value_of("disk").and_then(|disk| Uuid::parse_str(disk).ok());
    let begun = lines.next() == Some(LOG_BEGUN);
    match (owner, disk) {
        (Some(owner), Some(disk)) if owner == member => Ok((DiskId(disk), begun)),
        (Some(owner), Some(_)) => Err(wrong(&format!(
            "it is member {owner}'s, and this node is {member}"
        ))),
        _ => Err(wrong("its identity is damaged")),
    }
}

/// Durable before anything else is written here: a log without a name would be nobody's.
fn write(dir: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(dir.join(BEING_WRITTEN))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(dir.join(BEING_WRITTEN), dir.join(FILE))?;
    File::open(dir)?.sync_all()
}

fn has_files(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_name_and_two_never_share_one() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let named = DiskId::of_directory(one.path(), 3).unwrap();
        assert_eq!(DiskId::of_directory(one.path(), 3).unwrap(), named);
        assert_ne!(DiskId::of_directory(other.path(), 3).unwrap(), named);
    }

    #[test]
    fn a_directory_of_another_member_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        DiskId::of_directory(dir.path(), 3).unwrap();
        let error = DiskId::of_directory(dir.path(), 4).unwrap_err();
        assert_eq!(error.to_string(), "it is member 3's, and this node is 4");
    }

    #[test]
    fn a_log_without_a_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("log")).unwrap();
        let error = DiskId::of_directory(dir.path(), 1).unwrap_err();
        assert!(error.to_string().contains("no identity"), "{error}");
    }

    #[test]
    fn a_directory_whose_log_was_removed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskId::of_directory(dir.path(), 1).unwrap();
        let log = dir.path().join(LOG);
        fs::create_dir(&log).unwrap();
        fs::write(log.join("chunk"), "entries").unwrap();
        disk.log_begun(dir.path(), 1).unwrap();
        disk.log_begun(dir.path(), 1).unwrap();
        assert_eq!(DiskId::of_directory(dir.path(), 1).unwrap(), disk);

        fs::remove_file(log.join("chunk")).unwrap();
        let error = DiskId::of_directory(dir.path(), 1).unwrap_err();
        assert!(error.to_string().contains("its log is gone"), "{error}");
        fs::remove_dir(&log).unwrap();
        assert!(DiskId::of_directory(dir.path(), 1).is_err());
    }

    #[test]
    fn a_damaged_identity_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "",
            "lock-node 2\nmember 1\n",
            "lock-node 1\nmember 1\ndisk 7\n",
            "lock-node 1\ndisk 7\n",
        ] {
            fs::write(dir.path().join(FILE), text).unwrap();
            assert!(
                DiskId::of_directory(dir.path(), 1).is_err(),
                "{text:?} was accepted"
            );
        }
    }
}
