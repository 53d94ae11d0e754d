//! TLS between members, with certificates made on the spot.

use lock_node::PeerTlsFiles;

use super::{Fleet, tls_flags};
use crate::certificates::Authority;

impl Fleet {
    fn certificate(&self, authority: &Authority, dir: &str, name: &str) -> PeerTlsFiles {
        authority.issue(&self.dirs.path().join(dir).join(name), name)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_with_certificates_form_a_cluster_and_refuse_those_without() {
    let (ours, another) = (Authority::new(), Authority::new());
    let mut fleet = Fleet::new();
    for (at, name) in ["lock-node-1", "lock-node-2", "lock-node-3"]
        .into_iter()
        .enumerate()
    {
        let files = fleet.certificate(&ours, "ours", name);
        fleet.start(at, &tls_flags(&files));
    }
    for at in 0..3 {
        fleet.ready(at).await;
    }
    fleet.grants().await;

    // The third comes back with a certificate that somebody else signed. It believes in it, and nobody else does.
    fleet.kill(2).await;
    let theirs = fleet.certificate(&another, "another", "lock-node-3");
    fleet.start(2, &tls_flags(&theirs));
    fleet.says(&[0, 1], "TLS with the peer failed").await;
    fleet.says(&[2], "a peer was refused").await;
    fleet.grants().await;

    // Without any. It knows the secret, and that is not enough.
    fleet.kill(2).await;
    fleet.start(2, &[]);
    fleet.says(&[0, 1], "the peer hung up on TLS").await;
    fleet
        .says(&[2], "it wants TLS, and this node was started without")
        .await;
    fleet.grants().await;

    // With its own it is welcome.
    fleet.kill(2).await;
    let own = fleet.certificate(&ours, "ours", "lock-node-3");
    fleet.start(2, &tls_flags(&own));
    fleet.ready(2).await;
    fleet.kill(0).await;
    fleet.grants().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_certificate_nobody_would_believe_says_so_and_does_not_start() {
    let ours = Authority::new();
    let mut fleet = Fleet::of(1);
    let expired = ours.issue_expired(&fleet.dirs.path().join("expired"), "lock-node-1");
    let another = fleet.certificate(&ours, "ours", "lock-node-2");
    for (files, why) in [(expired, "expired"), (another, "not valid for name")] {
        fleet.start(0, &tls_flags(&files));
        assert!(!fleet.end(0).await.success());
        let log = fleet.log(0);
        assert!(
            log.contains("would refuse this node's certificate") && log.contains(why),
            "{log}"
        );
    }
}
