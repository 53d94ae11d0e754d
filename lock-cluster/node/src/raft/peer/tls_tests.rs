//! Every way in which two ends may not fit together, over a real connection.

use std::io;
use std::path::Path;

use tokio::net::{TcpListener, TcpStream};

use super::frame::FrameReader;
use super::handshake::{self, Badge, Key, Purpose, Refusal};
use super::tls::PeerTls;
use super::transport::{Transport, is_refusal};
use crate::config::Secret;
use crate::raft::DiskId;

// Outside of the crate it is used for whole clusters.
#[path = "../../../tests/it/certificates.rs"]
mod certificates;
use certificates::Authority;

/// What members may show.
struct Cast {
    dir: tempfile::TempDir,
    ours: Authority,
    another: Authority,
}

impl Cast {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            ours: Authority::new(),
            another: Authority::new(),
        }
    }

    fn dir(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn member(&self, id: u64) -> PeerTls {
        let name = format!("lock-node-{id}");
        PeerTls::load(&self.ours.issue(&self.dir(&name), &name)).unwrap()
    }

    fn expired(&self, id: u64) -> PeerTls {
        let files = self
            .ours
            .issue_expired(&self.dir("expired"), &format!("lock-node-{id}"));
        PeerTls::load(&files).unwrap()
    }

    fn stranger(&self, id: u64) -> PeerTls {
        let files = self
            .another
            .issue(&self.dir("stranger"), &format!("lock-node-{id}"));
        PeerTls::load(&files).unwrap()
    }
}

type Accepted = io::Result<Result<(u64, Purpose), Refusal>>;

/// Member 1 opens a connection to member 2.
async fn meet(opening: Transport, accepting: Transport) -> (io::Result<()>, Accepted) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let badge = |id| Badge {
        key: Key::new(Secret::new("ours").as_ref()),
        id,
        disk: DiskId::drawn(),
    };
    let open = async {
        let (reader, mut writer) = opening.open(TcpStream::connect(addr).await?, 2).await?;
        let mut reader = FrameReader::new(reader);
        let opened = handshake::open(&mut reader, &mut writer, &badge(1), 2, None, Purpose::Call).await;
        opened.map(drop)
    };
    let accept = async {
        let mut accepted = accepting.accept(listener.accept().await?.0).await?;
        let may_be = accepted.certified();
        let mut reader = FrameReader::new(accepted.reader);
        handshake::accept(&mut reader, &mut accepted.writer, &badge(2), may_be, |_| None).await
    };
    let both = async { tokio::join!(open, accept) };
    let in_time = tokio::time::timeout(std::time::Duration::from_secs(20), both);
    in_time.await.expect("nobody waits for the other")
}

#[tokio::test]
async fn members_with_certificates_of_their_own_let_each_other_in() {
    let cast = Cast::new();
    let (opened, accepted) = meet(Transport::Tls(cast.member(1)), Transport::Tls(cast.member(2))).await;
    opened.unwrap();
    assert_eq!(accepted.unwrap(), Ok((1, Purpose::Call)));
}

#[tokio::test]
async fn a_certificate_that_does_not_check_out_is_refused_by_either_end() {
    let cast = Cast::new();
    for wrong in [cast.stranger(1), cast.expired(1)] {
        let (opened, accepted) = meet(Transport::Tls(wrong), Transport::Tls(cast.member(2))).await;
        assert!(is_refusal(&opened.unwrap_err()));
        let refusal = accepted.unwrap_err();
        assert!(
            is_refusal(&refusal) && refusal.to_string().contains("TLS failed"),
            "{refusal}"
        );
    }
    // The last one is valid, and another member's: the address led astray.
    for wrong in [cast.stranger(2), cast.expired(2), cast.member(3)] {
        let (opened, accepted) = meet(Transport::Tls(cast.member(1)), Transport::Tls(wrong)).await;
        assert!(is_refusal(&opened.unwrap_err()));
        assert!(is_refusal(&accepted.unwrap_err()));
    }
}

#[tokio::test]
async fn a_member_cannot_speak_for_another() {
    let cast = Cast::new();
    let (opened, accepted) = meet(Transport::Tls(cast.member(3)), Transport::Tls(cast.member(2))).await;
    assert_eq!(accepted.unwrap(), Err(Refusal::Certificate));
    assert!(opened.unwrap_err().to_string().contains("names another member"));
}

#[tokio::test]
async fn with_and_without_tls_do_not_mix_and_both_ends_say_so() {
    let cast = Cast::new();
    for (opening, accepting) in [
        (Transport::Plain, Transport::Tls(cast.member(2))),
        (Transport::Tls(cast.member(1)), Transport::Plain),
    ] {
        let (opened, accepted) = meet(opening, accepting).await;
        let (opened, accepted) = (opened.unwrap_err(), accepted.unwrap_err());
        for refusal in [opened, accepted] {
            assert!(
                is_refusal(&refusal) && refusal.to_string().contains("TLS"),
                "{refusal}"
            );
        }
    }
}

#[tokio::test]
async fn a_node_looks_at_its_own_certificate_first() {
    let cast = Cast::new();
    cast.member(1).check_own(1).unwrap();
    assert!(cast.member(1).check_own(2).is_err(), "it names another");
    assert!(cast.expired(1).check_own(1).is_err());
    let (ours, theirs) = (
        cast.ours.issue(&cast.dir("a"), "lock-node-1"),
        cast.another.issue(&cast.dir("b"), "lock-node-1"),
    );
    let mixed = |cert: &Path, key: &Path, ca: &Path| {
        let files = crate::PeerTlsFiles {
            cert: cert.into(),
            key: key.into(),
            ca: ca.into(),
        };
        PeerTls::load(&files).and_then(|tls| tls.check_own(1))
    };
    mixed(&ours.cert, &ours.key, &ours.ca).unwrap();
    assert!(mixed(&ours.cert, &theirs.key, &ours.ca).is_err(), "another's key");
    assert!(
        mixed(&ours.cert, &ours.key, &theirs.ca).is_err(),
        "signed by somebody else"
    );
    assert!(
        mixed(&ours.key, &ours.key, &ours.ca).is_err(),
        "no certificate in the file"
    );
}
