//! Who a member is for as long as its directory lasts: which disk it has, and of which cluster it is.
//!
//! **The disk.** Raft rests on what members have promised and written down. A member that comes back under its old id on
//! an empty disk has forgotten its votes and the entries it acknowledged; together with one that lags it can elect a
//! leader that lacks what was committed, and locks are granted twice. So a data directory is given a name of its own,
//! drawn when it is first used; the membership in the log records each member's; and every connection between members
//! begins with it (`peer/handshake.rs`). A member that shows another one than the log records is refused, and stops.
//!
//! **The cluster.** Its founder draws a name for it, which stands in the first entry of its log and from there on with
//! every member, in the log and in snapshots. A member that has none yet is of the cluster that first sends it entries or
//! a snapshot, or asks for its vote, and for good: members of different clusters refuse each other, however their
//! addresses came to be mixed up.
//!
//! Both are in a file of the data directory beside the log that they vouch for, so that they are lost with it:
//!
//! ```text
//! lock-node 2
//! member 3
//! disk 5d0b9c1e-7b1c-4c3e-9d63-6c1b4f1b2f4a
//! log begun
//! cluster 0c9b3a44-58d1-4d57-9a6a-8f0e2b6f3d10
//! ```
//!
//! `log begun` is added once the log is there: from then on a directory without one is no member's any more, however
//! its log came to be removed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use super::ids::{ClusterId, DiskId};

/// What the data directory says about the member.
#[derive(Debug)]
pub(crate) struct Identity {
    dir: PathBuf,
    member: u64,
    disk: DiskId,
    cluster: Mutex<Option<Allegiance>>,
}

#[derive(Clone, Copy, Debug)]
struct Allegiance {
    to: ClusterId,
    /// Whether the file says so, too.
    written: bool,
}

/// This node is of another cluster already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this node belongs to cluster {ours}, not to {other}")]
pub(crate) struct OtherCluster {
    ours: ClusterId,
    other: ClusterId,
}

const FILE: &str = "identity";
const BEING_WRITTEN: &str = "identity.new";
/// Changes when anything in the directory does that another version of this program could not read.
const FORMAT: &str = "lock-node 2";
const LOG: &str = "log";
const LOG_BEGUN: &str = "log begun";

impl Identity {
    /// That of `dir`, which is `member`'s; the disk is named now if nothing is in it yet.
    ///
    /// # Errors
    /// The directory is another member's, was written by another version, or has a log and no name.
    pub(crate) fn of_directory(dir: &Path, member: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let known = |disk: DiskId, cluster: Option<ClusterId>| Self {
            dir: dir.to_owned(),
            member,
            disk,
            cluster: Mutex::new(cluster.map(|to| Allegiance { to, written: true })),
        };
        match fs::read_to_string(dir.join(FILE)) {
            Ok(text) => {
                let Parsed { disk, begun, cluster } = parse(&text, member)?;
                if begun && !has_files(&dir.join(LOG)) {
                    return Err(wrong(
                        "its log is gone, and with it what this member voted and acknowledged. Remove the member, and \
                         add it under a new id with an empty directory",
                    ));
                }
                Ok(known(disk, cluster))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if dir.join(LOG).exists() || dir.join("snapshots").exists() {
                    return Err(wrong(
                        "it has a log and no identity: an earlier version wrote it, or a part of it is lost. Start \
                         with an empty directory; in a cluster that goes on, under a new id",
                    ));
                }
                let drawn = known(DiskId::drawn(), None);
                write(dir, &drawn.text(false, None))?;
                Ok(drawn)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that the log is there, for good.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn log_begun(&self) -> io::Result<()> {
        let text = self.text(true, self.cluster());
        match fs::read_to_string(self.dir.join(FILE))? == text {
            true => Ok(()),
            false => write(&self.dir, &text),
        }
    }

    pub(crate) fn member(&self) -> u64 {
        self.member
    }

    pub(crate) fn disk(&self) -> DiskId {
        self.disk
    }

    /// The cluster that this member is of, if it is of one.
    pub(crate) fn cluster(&self) -> Option<ClusterId> {
        let cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        cluster.map(|cluster| cluster.to)
    }

    /// Whether the file says that it is of this one.
    pub(crate) fn is_of(&self, other: ClusterId) -> bool {
        let cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        cluster.is_some_and(|cluster| cluster.to == other && cluster.written)
    }

    /// This member is about to found a cluster, unless it is of one.
    ///
    /// The file does not say so before the log does ([`Identity::join`]): had it only the file, the founder could not
    /// tell after a crash whether it was taken in by somebody, and would never found anything.
    pub(crate) fn found(&self, new: ClusterId) -> Result<(), OtherCluster> {
        let mut cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        match *cluster {
            Some(Allegiance { to, .. }) => Err(OtherCluster { ours: to, other: new }),
            None => {
                *cluster = Some(Allegiance {
                    to: new,
                    written: false,
                });
                Ok(())
            }
        }
    }

    /// From now on, if not before, this member is of `new`: durably, when this returns. Blocks on the disk the first time.
    ///
    /// # Errors
    /// It is of another one, or the disk's.
    pub(crate) fn join(&self, new: ClusterId) -> io::Result<()> {
        let mut cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        match *cluster {
            Some(Allegiance { to, .. }) if to != new => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                OtherCluster { ours: to, other: new },
            )),
            Some(Allegiance { written: true, .. }) => Ok(()),
            Some(_) | None => {
                write(&self.dir, &self.text(true, Some(new)))?;
                *cluster = Some(Allegiance {
                    to: new,
                    written: true,
                });
                Ok(())
            }
        }
    }

    fn text(&self, log_begun: bool, cluster: Option<ClusterId>) -> String {
        let begun = if log_begun {
            format!("{LOG_BEGUN}\n")
        } else {
            String::new()
        };
        let cluster = cluster.map_or_else(String::new, |cluster| format!("cluster {cluster}\n"));
        format!(
            "{FORMAT}\nmember {}\ndisk {}\n{begun}{cluster}",
            self.member, self.disk
        )
    }
}

struct Parsed {
    disk: DiskId,
    begun: bool,
    cluster: Option<ClusterId>,
}

fn parse(text: &str, member: u64) -> io::Result<Parsed> {
    let mut lines = text.lines();
    let damaged = || wrong("its identity is damaged");
    match lines.next() {
        Some(FORMAT) => {}
        Some(other) if other.starts_with("lock-node ") => {
            return Err(wrong(&format!(
                "another version of this program wrote it ({other}; this one writes {FORMAT}), and its log cannot be read. \
                 Use that version, or give every member of the cluster a new, empty directory: that founds another \
                 cluster, without the locks of this one and with tokens from 1 on, which those refuse who have seen higher ones",
            )));
        }
        _ => return Err(damaged()),
    }
    let value_of =
        |line: Option<&str>, key: &str| Some(line?.strip_prefix(key)?.strip_prefix(' ')?.to_owned());
    let owner = value_of(lines.next(), "member").and_then(|id| id.parse::<u64>().ok());
    let disk = value_of(lines.next(), "disk").and_then(|disk| Uuid::parse_str(&disk).ok());
    let (Some(owner), Some(disk)) = (owner, disk) else {
        return Err(damaged());
    };
    if owner != member {
        return Err(wrong(&format!(
            "it is member {owner}'s, and this node is {member}"
        )));
    }
    let begun = match lines.next() {
        None => false,
        Some(LOG_BEGUN) => true,
        Some(_) => return Err(damaged()),
    };
    let cluster = match lines.next() {
        None => None,
        line => {
            let cluster = value_of(line, "cluster").and_then(|cluster| Uuid::parse_str(&cluster).ok());
            Some(ClusterId(cluster.ok_or_else(damaged)?))
        }
    };
    Ok(Parsed {
        disk: DiskId(disk),
        begun,
        cluster,
    })
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

    fn begun(dir: &Path, member: u64) -> Identity {
        let identity = Identity::of_directory(dir, member).unwrap();
        fs::create_dir_all(dir.join(LOG)).unwrap();
        fs::write(dir.join(LOG).join("chunk"), "entries").unwrap();
        identity.log_begun().unwrap();
        identity
    }

    #[test]
    fn a_directory_keeps_its_name_and_two_never_share_one() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let disk = |dir: &Path| Identity::of_directory(dir, 3).unwrap().disk();
        let named = disk(one.path());
        assert_eq!(disk(one.path()), named);
        assert_ne!(disk(other.path()), named);
    }

    #[test]
    fn a_directory_of_another_member_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Identity::of_directory(dir.path(), 3).unwrap();
        let error = Identity::of_directory(dir.path(), 4).unwrap_err();
        assert_eq!(error.to_string(), "it is member 3's, and this node is 4");
    }

    #[test]
    fn a_log_without_a_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("log")).unwrap();
        let error = Identity::of_directory(dir.path(), 1).unwrap_err();
        assert!(error.to_string().contains("no identity"), "{error}");
    }

    #[test]
    fn a_directory_whose_log_was_removed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let identity = begun(dir.path(), 1);
        identity.log_begun().unwrap();
        let again = Identity::of_directory(dir.path(), 1).unwrap();
        assert_eq!(again.disk(), identity.disk());

        let log = dir.path().join(LOG);
        fs::remove_file(log.join("chunk")).unwrap();
        let error = Identity::of_directory(dir.path(), 1).unwrap_err();
        assert!(error.to_string().contains("its log is gone"), "{error}");
        fs::remove_dir(&log).unwrap();
        assert!(Identity::of_directory(dir.path(), 1).is_err());
    }

    #[test]
    fn a_member_is_of_the_cluster_it_joined_first_for_good() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, other) = (ClusterId::drawn(), ClusterId::drawn());
        let identity = begun(dir.path(), 1);
        assert_eq!(identity.cluster(), None);
        identity.join(ours).unwrap();
        identity.join(ours).unwrap();
        let error = identity.join(other).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains(&other.to_string()), "{error}");

        let again = Identity::of_directory(dir.path(), 1).unwrap();
        assert_eq!(again.cluster(), Some(ours));
        assert!(again.join(other).is_err());
        assert!(again.found(other).is_err(), "nor does it found another");
        again.log_begun().unwrap();
        assert_eq!(
            Identity::of_directory(dir.path(), 1).unwrap().cluster(),
            Some(ours)
        );
    }

    #[test]
    fn a_founder_that_crashed_before_it_had_a_log_is_of_no_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (ClusterId::drawn(), ClusterId::drawn());
        let identity = begun(dir.path(), 1);
        identity.found(first).unwrap();
        assert!(identity.join(second).is_err(), "it is founding its own");
        let again = Identity::of_directory(dir.path(), 1).unwrap();
        assert_eq!(again.cluster(), None);
        again.found(second).unwrap();
        again.join(second).unwrap();
        let founded = Identity::of_directory(dir.path(), 1).unwrap();
        assert_eq!(founded.cluster(), Some(second));
    }

    #[test]
    fn a_directory_of_another_version_is_refused_with_what_to_do_about_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskId::drawn();
        fs::write(
            dir.path().join(FILE),
            format!("lock-node 1\nmember 1\ndisk {disk}\n"),
        )
        .unwrap();
        let error = Identity::of_directory(dir.path(), 1).unwrap_err().to_string();
        assert!(
            error.contains("(lock-node 1; this one writes lock-node 2)"),
            "{error}"
        );
        assert!(error.contains("a new, empty directory"), "{error}");
    }

    #[test]
    fn a_damaged_identity_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskId::drawn();
        for text in [
            String::new(),
            "lock-node 2\nmember 1\ndisk 7\n".to_owned(),
            "lock-node 2\ndisk 7\n".to_owned(),
            format!("lock-node 2\nmember 1\ndisk {disk}\nlog begun\ncluster 7\n"),
            // Nobody is of a cluster before there is a log.
            format!("lock-node 2\nmember 1\ndisk {disk}\ncluster {disk}\n"),
        ] {
            fs::write(dir.path().join(FILE), &text).unwrap();
            assert!(
                Identity::of_directory(dir.path(), 1).is_err(),
                "{text:?} was accepted"
            );
        }
    }
}
