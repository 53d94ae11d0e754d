//! TLS between members, where it is configured: both ends show a certificate, and both check the other's.
//!
//! Three things are checked of a certificate, by either end: the configured authority signed it, it is valid today,
//! and it names the member that its owner says it is: the DNS name `lock-node-<id>` among its alternative names. The
//! authority should therefore sign for this cluster only; a certificate that names somebody else opens nothing.
//!
//! TLS keeps the log, the names of locks and the snapshots from being read on their way, and says *which* member is
//! there. The shared secret (`handshake`) says that it belongs to the cluster. Each works without the other, and
//! together neither a leaked key nor a leaked secret is enough.
//!
//! TLS 1.3 only, and no resumption: each connection is checked anew, so an expired certificate is out within the life
//! of a connection. Files are read at the start; a renewed certificate is picked up by the next restart.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::config::PeerTlsFiles;

/// What a member's connections are made with.
#[derive(Clone)]
pub(crate) struct PeerTls {
    pub(super) opening: Arc<ClientConfig>,
    pub(super) accepting: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
}

impl PeerTls {
    /// Reads the files.
    pub(crate) fn load(files: &PeerTlsFiles) -> anyhow::Result<Self> {
        let PeerTlsFiles { cert, key, ca } = files;
        let chain = certificates(cert)?;
        let private = || {
            PrivateKeyDer::from_pem_file(key)
                .with_context(|| format!("reading the private key in {}", key.display()))
        };
        let mut roots = RootCertStore::empty();
        for authority in certificates(ca)? {
            roots
                .add(authority)
                .with_context(|| format!("{} is no certificate authority", ca.display()))?;
        }
        let roots = Arc::new(roots);
        let fits = || format!("{} and {} do not fit together", cert.display(), key.display());

        let mut opening = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(chain.clone(), private()?)
            .with_context(fits)?;
        opening.resumption = Resumption::disabled();

        let members_only = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider()).build()?;
        let mut accepting = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(members_only)
            .with_single_cert(chain.clone(), private()?)
            .with_context(fits)?;
        accepting.session_storage = Arc::new(NoServerSessionStorage {});
        accepting.send_tls13_tickets = 0;

        Ok(Self {
            opening: Arc::new(opening),
            accepting: Arc::new(accepting),
            chain,
            roots,
        })
    }

    /// Whether the other members will believe this one: better one sentence at the start than a member that
    /// everybody hangs up on.
    pub(crate) fn check_own(&self, me: u64) -> anyhow::Result<()> {
        let (leaf, issuers) = self
            .chain
            .split_first()
            .context("an empty chain was refused before")?;
        WebPkiServerVerifier::builder_with_provider(self.roots.clone(), provider())
            .build()?
            .verify_server_cert(leaf, issuers, &name_of(me)?, &[], UnixTime::now())
            .with_context(|| {
                format!("the other members would refuse this node's certificate: it must be valid, signed by the peers' authority, and name lock-node-{me}")
            })?;
        Ok(())
    }
}

/// The name that a member's certificate bears.
pub(super) fn name_of(member: u64) -> anyhow::Result<ServerName<'static>> {
    Ok(ServerName::try_from(format!("lock-node-{member}"))?)
}

/// Whether a certificate, which was found valid, is that of `member`.
pub(super) fn names(certificate: &CertificateDer<'_>, member: u64) -> bool {
    let (Ok(certificate), Ok(name)) = (ParsedCertificate::try_from(certificate), name_of(member)) else {
        return false;
    };
    verify_server_name(&certificate, &name).is_ok()
}

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let reading = || format!("reading the certificates in {}", file.display());
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .with_context(reading)?
        .collect::<Result<_, _>>()
        .with_context(reading)?;
    ensure!(
        !certificates.is_empty(),
        "there is no certificate in {}",
        file.display()
    );
    Ok(certificates)
}

/// Named, and not the process's default: a program that embeds a node may have another.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
