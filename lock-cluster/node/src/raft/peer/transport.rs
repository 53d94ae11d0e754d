//! What frames travel on: a TCP connection, with or without TLS.
//!
//! A member with TLS and one without refuse each other, at once and in words, instead of waiting for a first byte that
//! never comes. That is why a plain connection opens with four bytes that cannot begin a TLS one.

use std::io;

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::handshake::{self, denied};
use super::tls::{self, PeerTls};

/// How a connection without TLS begins.
const PLAIN_OPENING: [u8; 4] = *b"LTP ";
/// The first byte of a TLS connection: the type of a handshake record (RFC 8446 §5.1).
const TLS_OPENING: u8 = 0x16;

pub(super) type ReadEnd = Box<dyn AsyncRead + Send + Sync + Unpin>;
pub(super) type WriteEnd = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// Makes connections out of TCP's.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    Tls(PeerTls),
}

/// Both ends of a connection that was accepted.
pub(super) struct Accepted {
    pub(super) reader: ReadEnd,
    pub(super) writer: WriteEnd,
    /// What the other end showed; checked but for the name in it.
    certificate: Option<CertificateDer<'static>>,
}

impl Accepted {
    /// Whether the other end may be a member, as far as certificates go.
    pub(super) fn certified(&mut self) -> impl Fn(u64) -> bool + use<> {
        let certificate = self.certificate.take();
        move |member| {
            certificate
                .as_ref()
                .is_none_or(|certificate| tls::names(certificate, member))
        }
    }
}

impl Transport {
    /// The opening end of a connection to `member`.
    pub(super) async fn open(&self, mut stream: TcpStream, member: u64) -> io::Result<(ReadEnd, WriteEnd)> {
        match self {
            Self::Plain => {
                stream.write_all(&PLAIN_OPENING).await?;
                Ok(plain_ends(stream))
            }
            Self::Tls(tls) => {
                let name = tls::name_of(member).map_err(io::Error::other)?;
                let connecting = TlsConnector::from(tls.opening.clone()).connect(name, stream);
                let connected = connecting.await.map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                        denied("the peer hung up on TLS: it may have been started without")
                    }
                    _ => denied(&format!("TLS with the peer failed: {error}")),
                })?;
                let (reader, writer) = tokio::io::split(connected);
                Ok((Box::new(reader), Box::new(writer)))
            }
        }
    }

    /// The accepting end.
    pub(super) async fn accept(&self, mut stream: TcpStream) -> io::Result<Accepted> {
        match self {
            Self::Plain => {
                let mut opening = [0; PLAIN_OPENING.len()];
                stream.read_exact(&mut opening).await?;
                if opening[0] == TLS_OPENING {
                    return Err(denied("it wants TLS, and this node was started without"));
                }
                if opening != PLAIN_OPENING {
                    return Err(denied("it does not begin like a member"));
                }
                let (reader, writer) = plain_ends(stream);
                Ok(Accepted {
                    reader,
                    writer,
                    certificate: None,
                })
            }
            Self::Tls(tls) => {
                let mut first = [0];
                if stream.peek(&mut first).await? == 1 && first[0] != TLS_OPENING {
                    handshake::demand_tls(&mut stream).await?;
                    return Err(denied("it does not use TLS, which this node demands"));
                }
                let accepting = TlsAcceptor::from(tls.accepting.clone()).accept(stream);
                let accepted = accepting.await.map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => denied(&format!("TLS failed: {error}")),
                    _ => error,
                })?;
                let shown = accepted.get_ref().1.peer_certificates();
                let certificate = shown.and_then(|chain| chain.first()).cloned();
                let certificate = certificate.ok_or_else(|| denied("it showed no certificate"))?;
                let (reader, writer) = tokio::io::split(accepted);
                Ok(Accepted {
                    reader: Box::new(reader),
                    writer: Box::new(writer),
                    certificate: Some(certificate),
                })
            }
        }
    }
}

fn plain_ends(stream: TcpStream) -> (ReadEnd, WriteEnd) {
    let (reader, writer) = stream.into_split();
    (Box::new(reader), Box::new(writer))
}

/// Whether the other end is there and says no, which somebody should look at; not just down or slow.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    // With TLS 1.3 the accepting end's verdict on a certificate arrives with what should be the first frame.
    error.kind() == io::ErrorKind::PermissionDenied
        || error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>())
}
