//! Proving to each other that both ends belong to the same cluster.
//!
//! ```text
//!   server → client   magic, server nonce
//!   client → server   magic, from, its disk, to, purpose, client nonce, proof = HMAC(secret, "client" ‖ all of it)
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
//! Each end shows which disk it has, and is turned away if the log records another one for its id (`disk_id.rs`).
//!
//! Without a configured secret the key is empty and proves nothing; `NodeConfig::validate` allows that among
//! loopback addresses only. A node with a secret and one without refuse each other.

use std::io;

use rand::Rng as _;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::disk_id::DiskId;
use super::frame::{FrameReader, HANDSHAKE_BYTES_MAX, decode, send};
use super::hmac::hmac;
use super::refusal::{Refusal, TurnedAway};
use crate::config::Secret;

/// Changes with anything that travels between peers.
const MAGIC: [u8; 4] = *b"LTP5";
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
            to,
            purpose,
            nonce,
            proof: _,
        } = hello;
        let purpose = [*purpose as u8];
        hmac(
            &self.0,
            &[
                role,
                magic,
                &from.to_le_bytes(),
                disk.as_bytes(),
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
pub(crate) struct Badge {
    pub(crate) key: Key,
    pub(crate) id: u64,
    pub(crate) disk: DiskId,
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
    recorded: Option<DiskId>,
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
            if recorded.is_some_and(|recorded| recorded != disk) {
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
            if why == Refusal::OtherDisk && recorded.is_some_and(|recorded| recorded != disk) {
                return Err(denied(
                    "the peer says that this node has lost its disk, but its own is not the one that the log records",
                ));
            }
            Err(io::Error::new(io::ErrorKind::PermissionDenied, TurnedAway(why)))
        }
    }
}

/// The accepting end: who is there and what for, or why it was turned away. `may_be` says what else is known of it,
/// and `recorded` which disk it must have.
pub(super) async fn accept<Io>(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut Io,
    me: &Badge,
    may_be: impl Fn(u64) -> bool,
    recorded: impl Fn(u64) -> Option<DiskId>,
) -> io::Result<Result<(u64, Purpose), Refusal>>
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
    } else if recorded(hello.from).is_some_and(|recorded| recorded != hello.disk) {
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
    Ok(Ok((hello.from, hello.purpose)))
}

/// What is signed of a refusal.
fn refused_with(why: Refusal, disk: DiskId) -> [u8; 17] {
    let mut signed = [why as u8; 17];
    signed[1..].copy_from_slice(disk.as_bytes());
    signed
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
mod tests {
    use super::super::refusal::has_lost_its_disk;
    use super::*;

    /// Both ends over a pipe: what the opener sees, and what the acceptor. 1 calls `to`, and 2 accepts.
    async fn shake(
        opener: Option<&str>,
        acceptor: Option<&str>,
        to: u64,
    ) -> (io::Result<()>, Result<(u64, Purpose), Refusal>) {
        let (opened, accepted) = shake_with_disks(opener, acceptor, to, [None, None]).await;
        (opened.map(drop), accepted)
    }

    /// The same with what each end has recorded of the other's disk.
    async fn shake_with_disks(
        opener: Option<&str>,
        acceptor: Option<&str>,
        to: u64,
        [recorded_of_2, recorded_of_1]: [Option<DiskId>; 2],
    ) -> (io::Result<DiskId>, Result<(u64, Purpose), Refusal>) {
        let badge = |secret: Option<&str>, id: u64| Badge {
            key: Key::new(secret.and_then(Secret::new).as_ref()),
            id,
            disk: DiskId::drawn(),
        };
        let (near, far) = tokio::io::duplex(1024);
        let ((near_read, mut near_write), (far_read, mut far_write)) =
            (tokio::io::split(near), tokio::io::split(far));
        let (mut near_read, mut far_read) = (FrameReader::new(near_read), FrameReader::new(far_read));
        let (opener, acceptor) = (badge(opener, 1), badge(acceptor, 2));
        let (opened, accepted) = tokio::join!(
            open(
                &mut near_read,
                &mut near_write,
                &opener,
                to,
                recorded_of_2,
                Purpose::Append
            ),
            accept(
                &mut far_read,
                &mut far_write,
                &acceptor,
                |from| from == 1,
                |from| recorded_of_1.filter(|_| from == 1)
            )
        );
        if let Ok(disk) = &opened {
            assert_eq!(*disk, acceptor.disk, "it is told whose disk it is");
        }
        (opened, accepted.unwrap())
    }

    #[tokio::test]
    async fn two_who_know_the_secret_let_each_other_in() {
        let (opened, accepted) = shake(Some("ours"), Some("ours"), 2).await;
        opened.unwrap();
        assert_eq!(accepted, Ok((1, Purpose::Append)));
        shake(None, None, 2).await.0.unwrap();
    }

    #[tokio::test]
    async fn one_who_does_not_know_it_is_refused_by_either_end() {
        for (opener, acceptor) in [
            (Some("guess"), Some("ours")),
            (None, Some("ours")),
            (Some("ours"), None),
        ] {
            let (opened, accepted) = shake(opener, acceptor, 2).await;
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(accepted, Err(Refusal::Secret));
        }
    }

    #[tokio::test]
    async fn a_member_that_was_looked_for_elsewhere_says_so() {
        let (opened, accepted) = shake(Some("ours"), Some("ours"), 3).await;
        assert!(opened.unwrap_err().to_string().contains("another member"));
        assert_eq!(accepted, Err(Refusal::OtherMember));
    }

    #[tokio::test]
    async fn a_disk_that_is_not_the_recorded_one_is_turned_away_by_either_end() {
        let other = Some(DiskId::drawn());
        let (opened, accepted) = shake_with_disks(Some("ours"), Some("ours"), 2, [None, other]).await;
        let error = opened.unwrap_err();
        assert!(has_lost_its_disk(&error), "{error}");
        assert_eq!(accepted, Err(Refusal::OtherDisk));

        let (opened, _) = shake_with_disks(Some("ours"), Some("ours"), 2, [other, None]).await;
        let error = opened.unwrap_err();
        assert!(error.to_string().contains("add it under a new id"), "{error}");
        assert!(!has_lost_its_disk(&error), "it is the other one that has");
    }

    #[tokio::test]
    async fn an_impostor_at_a_members_address_cannot_make_a_node_believe_that_its_disk_is_lost() {
        let (recorded, other) = (Some(DiskId::drawn()), Some(DiskId::drawn()));
        let (opened, accepted) = shake_with_disks(Some("ours"), Some("ours"), 2, [recorded, other]).await;
        let error = opened.unwrap_err();
        assert!(!has_lost_its_disk(&error), "{error}");
        assert_eq!(accepted, Err(Refusal::OtherDisk));
    }

    #[tokio::test]
    async fn a_stranger_cannot_make_a_node_believe_that_its_disk_is_lost() {
        let (near, far) = tokio::io::duplex(1024);
        let ((near_read, mut near_write), (far_read, mut far_write)) =
            (tokio::io::split(near), tokio::io::split(far));
        let (mut near_read, mut far_read) = (FrameReader::new(near_read), FrameReader::new(far_read));
        let me = Badge {
            key: Key::new(Secret::new("ours").as_ref()),
            id: 1,
            disk: DiskId::drawn(),
        };
        let stranger = async {
            let challenge = Challenge {
                magic: MAGIC,
                nonce: nonce(),
            };
            send(&mut far_write, &challenge).await.unwrap();
            far_read.expect(HANDSHAKE_BYTES_MAX).await.unwrap();
            let refusal = Verdict::Refused {
                why: Refusal::OtherDisk,
                disk: DiskId::drawn(),
                proof: Proof::default(),
            };
            send(&mut far_write, &refusal).await.unwrap();
        };
        let (opened, ()) = tokio::join!(
            open(&mut near_read, &mut near_write, &me, 2, None, Purpose::Call),
            stranger
        );
        let error = opened.unwrap_err();
        assert!(!has_lost_its_disk(&error), "{error}");
    }
}
