//! Every way in which two ends may not fit together, over a real connection.

use std::io;
use std::path::Path;
use std::time::Duration;

use openraft::raft::StreamAppendResult;
use tokio::net::{TcpListener, TcpStream};

use super::client::Connection;
use super::frame::{FRAME_BYTES_MAX, FrameReader, send};
use super::handshake::{self, Badge, Caller, Key, Purpose, Recorded};
use super::pump::{Pump, tests::request};
use super::refusal::Refusal;
use super::tls::PeerTls;
use super::transport::{Transport, is_refusal};
use super::wire::C;
use crate::NodeFaults;
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

type Accepted = io::Result<Result<Caller, Refusal>>;

/// Member 1 opens a connection to member 2.
async fn meet(opening: Transport, accepting: Transport) -> (io::Result<()>, Accepted) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let badge = |id| Badge {
        key: Key::new(Secret::new("ours").as_ref()),
        id,
        disk: DiskId::drawn(),
        cluster: None,
    };
    let open = async {
        let (reader, mut writer) = opening.open(TcpStream::connect(addr).await?, 2).await?;
        let mut reader = FrameReader::new(reader);
        let opened = handshake::open(
            &mut reader,
            &mut writer,
            &badge(1),
            2,
            Recorded::default(),
            Purpose::Call,
        )
        .await;
        opened.map(drop)
    };
    let accept = async {
        let mut accepted = accepting.accept(listener.accept().await?.0).await?;
        let may_be = accepted.certified();
        let mut reader = FrameReader::new(accepted.reader);
        handshake::accept(&mut reader, &mut accepted.writer, &badge(2), may_be, |_, _| None).await
    };
    let both = async { tokio::join!(open, accept) };
    let in_time = tokio::time::timeout(Duration::from_secs(20), both);
    in_time.await.expect("nobody waits for the other")
}

#[tokio::test]
async fn members_with_certificates_of_their_own_let_each_other_in() {
    let cast = Cast::new();
    let (opened, accepted) = meet(Transport::Tls(cast.member(1)), Transport::Tls(cast.member(2))).await;
    opened.unwrap();
    assert_eq!(accepted.unwrap().map(|caller| caller.id), Ok(1));
}

/// More than any buffer on the way holds, so that writes end halfway, on either side of the encryption.
#[tokio::test]
async fn entries_flow_over_tls_and_each_request_is_answered() {
    const REQUESTS: usize = 100;
    const REQUEST_BYTES: usize = 300 << 10;
    let cast = Cast::new();
    let (opening, accepting) = (Transport::Tls(cast.member(1)), Transport::Tls(cast.member(2)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let answering = async {
        let mut accepted = accepting
            .accept(listener.accept().await.unwrap().0)
            .await
            .unwrap();
        let mut reader = FrameReader::new(accepted.reader);
        while let Ok(Some(request)) = reader.next(FRAME_BYTES_MAX).await {
            assert!(request.len() > REQUEST_BYTES);
            let answer: StreamAppendResult<C> = Ok(None);
            send(&mut accepted.writer, &answer).await.unwrap();
        }
    };
    let sending = async {
        let stream = TcpStream::connect(addr).await.unwrap();
        let (reader, writer) = opening.open(stream, 2).await.unwrap();
        let connection = Connection {
            reader: FrameReader::new(reader),
            writer,
        };
        let requests = futures::stream::iter(vec![request(REQUEST_BYTES); REQUESTS]);
        let mut home = None;
        let mut pump = Pump::new(requests, connection, &mut home, 2, NodeFaults::new(false, &[]));
        let mut answered = 0;
        while let Some(answer) = pump.next().await {
            assert!(answer.unwrap().is_ok());
            answered += 1;
        }
        assert_eq!(answered, REQUESTS);
        drop(pump);
        assert!(
            home.take().is_some(),
            "the connection is kept for the next stream"
        );
    };
    let both = async { tokio::join!(sending, answering) };
    let in_time = tokio::time::timeout(Duration::from_secs(60), both);
    in_time.await.expect("nothing is held back");
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
