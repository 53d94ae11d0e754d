//! Proving to each other that both ends belong to the same cluster.
//!
//! ```text
//!   server → client   magic, server nonce
//!   client → server   magic, from, its disk and cluster, the last membership it knows, to, purpose, client nonce,
//!                     proof = HMAC(secret, "client" ‖ all of it)
//!   server → client   its disk, proof = HMAC(secret, "server" ‖ all of it)
//!          or         a refusal, its disk, proof = HMAC(secret, "refusal" ‖ all of it), and the end
//! ```
//!
//! The secret itself never travels, a recorded handshake is worthless against the next nonce, and neither end can
//! be used to answer for the other (the role is part of what is signed). Proofs are compared in constant time.
//! `to` is signed too: an address that now belongs to another member leads to a refusal instead of to a vote
//! counted for the wrong node.
//!
//! Anybody can refuse. But one refusal makes a node stop for good (that it has lost its disk), so that one counts only
//! from an end that proves to be a member, and that shows the disk which the log of the node that it refuses records for
//! it: a process of another cluster at a dead member's address, or a member that itself has lost its disk, stops nobody.
//!
//! Each end shows which disk it has, and is turned away if the log records another one for its id; and two that are of
//! different clusters refuse each other, before they look at disks (`identity.rs`). One that is of none yet is let in.
//!
//! The one that opens also says which membership it knows of: whoever was asleep while a member was removed and taken in
//! again on a new disk holds a record that is out of date, and must neither stop that member nor keep it from bringing
//! the news. A disk that was lost has no membership on it, or an older one than those have who record it as lost.
//!
//! Without a configured secret the key is empty and proves nothing; `NodeConfig::validate` allows that among
//! loopback addresses only. A node with a secret and one without refuse each other.

use std::io;
use std::sync::Arc;

use rand::Rng as _;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::identity::Identity;
use super::super::ids::{ClusterId, DiskId};
use super::super::types::Position;
use super::frame::{FrameReader, HANDSHAKE_BYTES_MAX, decode, send};
use super::hmac::hmac;
use super::refusal::{Refusal, TurnedAway};
use crate::config::Secret;

/// Changes with anything that travels between peers.
const MAGIC: [u8; 4] = *b"LTP7";
/// In its place, to an end that does not use TLS where it should.
const USE_TLS: [u8; 4] = *b"LTPS";

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    Append,
    Call,
    Snapshot,
}

/// What proofs are made with.
#[derive(Clone)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// The cluster's secret; empty if there is none.
    pub(crate) fn new(secret: Option<&Secret>) -> Self {
        Self(
            secret
                .map(|secret| secret.expose().as_bytes().to_vec())
                .unwrap_or_default(),
        )
    }

    /// `server` is what only the accepting end adds to it.
    fn prove(&self, role: &[u8], hello: &Hello, server_nonce: &Nonce, server: &[u8]) -> Proof {
        let Hello {
            magic,
            from,
            disk,
            cluster,
            as_of,
            to,
            purpose,
            nonce,
            proof: _,
        } = hello;
        let purpose = [*purpose as u8];
        // No cluster has the name of zeros.
        let cluster = cluster.map_or([0; 16], |cluster| *cluster.as_bytes());
        // Says itself where it ends, as all that is signed here does by its length.
        let as_of = postcard::to_stdvec(as_of).expect("plain values always encode into memory");
        hmac(
            &self.0,
            &[
                role,
                magic,
                &from.to_le_bytes(),
                disk.as_bytes(),
                &cluster,
                &as_of,
                &to.to_le_bytes(),
                &purpose,
                server_nonce,
                nonce,
                server,
            ],
        )
    }
}

/// Who a node is, and what it proves that with.
#[derive(Clone)]
pub(crate) struct Me {
    pub(crate) key: Key,
    pub(crate) identity: Arc<Identity>,
}

impl Me {
    /// What it shows now.
    pub(super) fn badge(&self) -> Badge {
        Badge {
            key: self.key.clone(),
            id: self.identity.member(),
            disk: self.identity.disk(),
            cluster: self.identity.cluster(),
        }
    }
}

/// What a node shows at the beginning of a connection.
pub(super) struct Badge {
    pub(super) key: Key,
    pub(super) id: u64,
    pub(super) disk: DiskId,
    pub(super) cluster: Option<ClusterId>,
}

/// What the log of the opening end says.
#[derive(Clone, Copy, Default)]
pub(super) struct Recorded {
    /// Of the other end's disk.
    pub(super) disk: Option<DiskId>,
    /// Since when: the position of its newest membership.
    pub(super) as_of: Option<Position>,
}

/// Who has opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) id: u64,
    pub(super) cluster: Option<ClusterId>,
    pub(super) purpose: Purpose,
}

#[derive(Serialize, Deserialize)]
struct Challenge {
    magic: [u8; 4],
    nonce: Nonce,
}

#[derive(Serialize, Deserialize)]
struct Hello {
    magic: [u8; 4],
    from: u64,
    disk: DiskId,
    cluster: Option<ClusterId>,
    as_of: Option<Position>,
    to: u64,
    purpose: Purpose,
    nonce: Nonce,
    proof: Proof,
}

#[derive(Serialize, Deserialize)]
enum Verdict {
    Welcome {
        disk: DiskId,
        proof: Proof,
    },
    Refused {
        why: Refusal,
        disk: DiskId,
        proof: Proof,
    },
}

/// The opening end: proves itself to `to`, and has it prove itself and show its disk, which must be the `recorded` one.
pub(super) async fn open<Io>(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut Io,
    me: &Badge,
    to: u64,
    recorded: Recorded,
    purpose: Purpose,
) -> io::Result<DiskId>
where
    Io: AsyncWrite + Unpin,
{
    let challenge: Challenge = decode(&reader.expect(HANDSHAKE_BYTES_MAX).await?)?;
    if challenge.magic == USE_TLS {
        return Err(denied("the peer demands TLS, and this node was started without"));
    }
    if challenge.magic != MAGIC {
        return Err(denied("the peer speaks another version of the protocol"));
    }
    let mut hello = Hello {
        magic: MAGIC,
        from: me.id,
        disk: me.disk,
        cluster: me.cluster,
        as_of: recorded.as_of,
        to,
        purpose,
        nonce: nonce(),
        proof: Proof::default(),
    };
    hello.proof = me.key.prove(b"client", &hello, &challenge.nonce, &[]);
    send(writer, &hello).await?;
    match decode(&reader.expect(HANDSHAKE_BYTES_MAX).await?)? {
        Verdict::Welcome { disk, proof } => {
            let expected = me.key.prove(b"server", &hello, &challenge.nonce, disk.as_bytes());
            if !is_same(&proof, &expected) {
                return Err(denied(
                    "the peer could not prove that it knows the cluster's secret",
                ));
            }
            if recorded.disk.is_some_and(|recorded| recorded != disk) {
                return Err(denied(&format!(
                    "the peer was turned away: {}",
                    Refusal::OtherDisk
                )));
            }
            Ok(disk)
        }
        Verdict::Refused { why, disk, proof } => {
            let refused = refused_with(why, disk);
            let expected = me.key.prove(b"refusal", &hello, &challenge.nonce, &refused);
            if why == Refusal::OtherDisk && !is_same(&proof, &expected) {
                return Err(denied(
                    "the peer says that this node has lost its disk, and could not prove that it knows the cluster's \
                     secret",
                ));
            }
            if why == Refusal::OtherDisk && recorded.disk.is_some_and(|recorded| recorded != disk) {
                return Err(denied(
                    "the peer says that this node has lost its disk, but its own is not the one that the log records",
                ));
            }
            Err(io::Error::new(io::ErrorKind::PermissionDenied, TurnedAway(why)))
        }
    }
}

/// The accepting end: who is there and what for, or why it was turned away. `may_be` says what else is known of it,
/// and `recorded` which disk it must have, given the last membership that it knows.
pub(super) async fn accept<Io>(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut Io,
    me: &Badge,
    may_be: impl Fn(u64) -> bool,
    recorded: impl Fn(u64, Option<Position>) -> Option<DiskId>,
) -> io::Result<Result<Caller, Refusal>>
where
    Io: AsyncWrite + Unpin,
{
    let server_nonce = nonce();
    send(
        writer,
        &Challenge {
            magic: MAGIC,
            nonce: server_nonce,
        },
    )
    .await?;
    let hello: Hello = decode(&reader.expect(HANDSHAKE_BYTES_MAX).await?)?;
    let refusal = if hello.magic != MAGIC {
        Some(Refusal::Version)
    } else if !is_same(&hello.proof, &me.key.prove(b"client", &hello, &server_nonce, &[])) {
        Some(Refusal::Secret)
    } else if hello.to != me.id {
        Some(Refusal::OtherMember)
    } else if !may_be(hello.from) {
        Some(Refusal::Certificate)
    } else if let (Some(caller), Some(called)) = (hello.cluster, me.cluster)
        && caller != called
    {
        Some(Refusal::OtherCluster { caller, called })
    } else if recorded(hello.from, hello.as_of).is_some_and(|recorded| recorded != hello.disk) {
        Some(Refusal::OtherDisk)
    } else {
        None
    };
    if let Some(why) = refusal {
        let disk = me.disk;
        let proof = me
            .key
            .prove(b"refusal", &hello, &server_nonce, &refused_with(why, disk));
        send(writer, &Verdict::Refused { why, disk, proof }).await?;
        return Ok(Err(why));
    }
    send(
        writer,
        &Verdict::Welcome {
            disk: me.disk,
            proof: me.key.prove(b"server", &hello, &server_nonce, me.disk.as_bytes()),
        },
    )
    .await?;
    Ok(Ok(Caller {
        id: hello.from,
        cluster: hello.cluster,
        purpose: hello.purpose,
    }))
}

/// What is signed of a refusal.
fn refused_with(why: Refusal, disk: DiskId) -> Vec<u8> {
    postcard::to_stdvec(&(why, disk)).expect("plain values always encode into memory")
}

/// What an end that demands TLS says to one that does not use it.
pub(super) async fn demand_tls(writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let challenge = Challenge {
        magic: USE_TLS,
        nonce: Nonce::default(),
    };
    send(writer, &challenge).await
}

pub(super) fn denied(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

fn is_same(one: &Proof, other: &Proof) -> bool {
    one.ct_eq(other).into()
}

fn nonce() -> Nonce {
    let mut nonce = Nonce::default();
    rand::rng().fill_bytes(&mut nonce);
    nonce
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
