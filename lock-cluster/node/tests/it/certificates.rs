//! Certificates for tests, made on the spot: an authority, and what it signs.
//!
//! Shared by the tests inside the crate and those outside of it.

use std::path::Path;

use lock_node::PeerTlsFiles;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("it signs itself").pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Files with a certificate for `name`, in a directory of their own.
    pub(crate) fn issue(&self, dir: &Path, name: &str) -> PeerTlsFiles {
        self.sign(dir, CertificateParams::new([name.to_owned()]).expect("a name"))
    }

    /// The same, no longer valid.
    pub(crate) fn issue_expired(&self, dir: &Path, name: &str) -> PeerTlsFiles {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(dir, params)
    }

    fn sign(&self, dir: &Path, params: CertificateParams) -> PeerTlsFiles {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("it is signed");
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::create_dir_all(dir).expect("a directory");
            std::fs::write(&path, text).expect("it is written");
            path
        };
        PeerTlsFiles {
            cert: file("cert.pem", &certificate.pem()),
            key: file("key.pem", &key.serialize_pem()),
            ca: file("ca.pem", &self.pem),
        }
    }
}
