//! The types that the consensus library is instantiated with.
//!
//! Leader ids are the textbook ones (`leader_id_std`): at most one leader a term, so a term alone names a reign
//! and a log id is `(term, index)`. The library's "advanced" ids allow several leaders within a term; elections
//! then conflict less, but everything here that says "the leader of term 7" would have to be said again.
//!
//! One log entry is one [`Batch`]: all commands the leader found waiting, encoded **once**, as bytes. The same
//! bytes go into the log, over the wire to every follower and into each follower's log; only apply looks inside.
//! At 64 clients and more it is the CPU that bounds a lock cluster, not the disk, and encoding the same commands
//! three times was the first thing to go.

use std::fmt;
use std::marker::PhantomData;
use std::{cmp, io};

use bytes::Bytes;
use lock_core::{ClusterTime, Command, Reply};
use openraft::impls::{Entry, EntryPayload, InlineBatch, LogId, OneshotResponder, leader_id_std};
use openraft::storage::SnapshotMeta;
use openraft::vote::RaftLeaderId;
use openraft::{OptionalSend, RaftTypeConfig, StoredMembership};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ids::{ClusterId, DiskId};
use super::runtime::ServiceRt;

/// A member's id.
pub type NodeId = u64;

/// Term and candidate. Uncommitted, it is a vote; committed, only the term remains.
pub type LeaderId = leader_id_std::LeaderId<u64, NodeId>;
/// A leader's name inside log ids: its term.
pub type CommittedLeaderId = <LeaderId as RaftLeaderId>::Committed;
/// A log id: term and index.
pub type Position = LogId<CommittedLeaderId>;
/// A promise to a candidate, or a reign.
pub type Vote = openraft::Vote<LeaderId>;
/// What an entry carries.
pub type Payload = EntryPayload<Batch, NodeId, PeerNode>;
/// An entry of the log.
pub type LogEntry = Entry<CommittedLeaderId, Payload>;
/// Who belongs to the cluster, and since which entry.
pub type Membership = StoredMembership<CommittedLeaderId, NodeId, PeerNode>;
/// Which entries a snapshot stands for.
pub type Meta = SnapshotMeta<CommittedLeaderId, NodeId, PeerNode>;
/// A snapshot as it travels: the encoded state.
pub type Snapshot = openraft::storage::Snapshot<CommittedLeaderId, NodeId, PeerNode, Bytes>;

/// The library's type configuration, for one runtime. Written by hand because the library's macro cannot make a
/// generic one.
pub struct Cfg<R>(PhantomData<fn() -> R>);

impl<R: ServiceRt> RaftTypeConfig for Cfg<R> {
    type D = Batch;
    type R = Vec<Reply>;
    type NodeId = NodeId;
    type Node = PeerNode;
    type Term = u64;
    type LeaderId = LeaderId;
    type Vote = Vote;
    type Payload = Payload;
    type Entry = LogEntry;
    type AsyncRuntime = R;
    type Responder<T>
        = OneshotResponder<Self, T>
    where
        T: OptionalSend + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: OptionalSend + 'static;
    type ErrorSource = anyerror::AnyError;
}

// What the library wants of a marker type; a derive would ask the same of `R`, which is never there.
impl<R> Clone for Cfg<R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> Copy for Cfg<R> {}
impl<R> Default for Cfg<R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}
impl<R> fmt::Debug for Cfg<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cfg")
    }
}
impl<R> PartialEq for Cfg<R> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<R> Eq for Cfg<R> {}
impl<R> PartialOrd for Cfg<R> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<R> Ord for Cfg<R> {
    fn cmp(&self, _: &Self) -> cmp::Ordering {
        cmp::Ordering::Equal
    }
}

/// What the replicated membership records about a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerNode {
    /// `host:port` for peers.
    pub peer_addr: String,
    /// Base URL for clients.
    pub client_url: String,
    /// Its disk, since the leader has first seen it.
    pub disk: Option<DiskId>,
    /// The cluster, the same for all of them: in the log and in snapshots, it tells of which cluster these are.
    pub cluster: Option<ClusterId>,
}

impl fmt::Display for PeerNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.peer_addr)
    }
}

/// Commands that become one log entry, in their encoded form.
#[derive(Clone, PartialEq, Eq)]
pub struct Batch(Bytes);

/// What is inside a [`Batch`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchContent {
    /// Cluster time, as the leader stamped it.
    pub at: ClusterTime,
    /// The leader that proposed it.
    pub by: u64,
    /// What to apply, in this order.
    pub commands: Vec<Command>,
}

impl Batch {
    /// First byte of every encoded batch. A node that meets another one is too old for the log it was given,
    /// and stops instead of guessing.
    const FORMAT: u8 = 1;

    /// Encodes commands into what the log will hold.
    pub fn encode(content: &BatchContent) -> Self {
        let bytes =
            postcard::to_extend(content, vec![Self::FORMAT]).expect("plain values always encode into memory");
        Self(Bytes::from(bytes))
    }

    /// Looks inside. An error means that this program cannot understand the log, which no retry will change.
    pub fn decode(&self) -> io::Result<BatchContent> {
        match self.0.split_first() {
            Some((&Self::FORMAT, content)) => postcard::from_bytes(content).map_err(|error| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a batch in the log is unreadable: {error}"),
                )
            }),
            Some((format, _)) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "a batch in the log has format {format}, this program knows {}",
                    Self::FORMAT
                ),
            )),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a batch in the log is empty",
            )),
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} bytes)", self.0.len())
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Serialize for Batch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawBytes;
        impl Visitor<'_> for RawBytes {
            type Value = Batch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an encoded batch")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Batch, E> {
                if bytes.is_empty() {
                    return Err(E::custom("an empty batch"));
                }
                Ok(Batch(Bytes::copy_from_slice(bytes)))
            }
        }
        deserializer.deserialize_bytes(RawBytes).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_survives_the_log_and_the_wire() {
        let content = BatchContent {
            at: ClusterTime::from_ms(1_234),
            by: 2,
            commands: vec![Command::Expire, Command::Expire],
        };
        let batch = Batch::encode(&content);
        let wire = postcard::to_stdvec(&batch).unwrap();
        let received: Batch = postcard::from_bytes(&wire).unwrap();
        assert_eq!(received, batch);
        assert_eq!(received.decode().unwrap(), content);
    }

    #[test]
    fn a_batch_of_a_newer_format_is_refused() {
        let error = Batch(Bytes::from_static(&[9, 1, 2, 3])).decode().unwrap_err();
        assert!(error.to_string().contains("format 9"), "{error}");
    }
}
