//! Whose entries a member of no cluster takes, and what it is from then on.

use std::path::Path;
use std::time::Duration;

use lock_core::Command;
use testkit::{eventually, found_within};

use super::flush_tests::{SOON, a_cluster, listen, me, member};
use crate::config::Member;

/// Several elections' time.
const LONG_ENOUGH: Duration = Duration::from_secs(3);

fn two_members() -> Vec<Member> {
    let ports = testkit::free_ports(4);
    [(1, 0), (2, 2)]
        .map(|(id, at)| Member {
            id,
            peer_addr: format!("127.0.0.1:{}", ports[at]),
            client_addr: format!("127.0.0.1:{}", ports[at + 1]),
        })
        .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_entries_is_of_their_cluster_and_takes_none_from_one_that_names_no_cluster() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let dir = |at: usize| -> &Path { dirs[at].path() };
    let members = two_members();
    let identities = [me(dir(0), 1), me(dir(1), 2)];
    let (first, first_service) = member(&members, &identities[0], dir(0), Default::default()).await;
    let (second, second_service) = member(&members, &identities[1], dir(1), Default::default()).await;
    let _second_port = listen(&members[1], &identities[1], &second);

    // It founds, and does not say what: its votes are asked for in vain.
    first.found(a_cluster(), &Default::default()).await.unwrap();
    let leads = found_within(LONG_ENOUGH, async || {
        first_service.propose(Command::Expire).await.ok()
    });
    assert!(leads.await.is_none(), "it was voted for");
    assert_eq!((second.cluster(), identities[1].identity.cluster()), (None, None));

    identities[0].identity.found(a_cluster()).unwrap();
    eventually(SOON, "the first leads", async || {
        first_service.propose(Command::Expire).await.ok()
    })
    .await;
    assert!(identities[1].identity.is_of(a_cluster()), "in writing");
    for (service, consensus) in [(first_service, first), (second_service, second)] {
        service.stop();
        consensus.shutdown().await;
    }
}
