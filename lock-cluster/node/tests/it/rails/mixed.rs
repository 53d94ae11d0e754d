//! Two clusters whose addresses were mixed up. They share a secret, as clusters do whose settings were copied.

use lock_client::wire::AddMember;
use lock_client::{ClusterClient, LockError};

use super::{ADMIN_TOKEN, Fleet};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_another_cluster_is_not_taken_in_and_both_say_why() {
    let (mut ours, mut theirs) = (Fleet::of(1), Fleet::of(1));
    theirs.members[0].id = 2;
    for fleet in [&mut ours, &mut theirs] {
        fleet.set("LOCK_NODE_ADMIN_TOKEN", ADMIN_TOKEN);
        fleet.start_all().await;
        fleet.grants().await;
    }
    let admin = |fleet: &Fleet| ClusterClient::new(fleet.client_config(Some(ADMIN_TOKEN))).expect("a client");
    let (our_admin, their_admin) = (admin(&ours), admin(&theirs));
    let before = their_admin.status_of(&theirs.url(0)).await.expect("it answers");
    let our_id = our_admin.status_of(&ours.url(0)).await.expect("it answers");
    let (our_id, their_id) = (
        our_id.cluster_id.expect("founded"),
        before.cluster_id.expect("founded"),
    );
    assert_ne!(our_id, their_id);

    let stranger = AddMember {
        id: 2,
        peer_addr: theirs.members[0].peer_addr.clone(),
        client_addr: theirs.members[0].client_addr.clone(),
        voter: true,
    };
    let added = our_admin.add_member(&stranger).await;
    let Err(LockError::Invalid { slug, detail }) = added else {
        panic!("it was taken in: {added:?}");
    };
    assert_eq!(slug, "membership-refused");
    assert!(detail.contains("log says why"), "{detail}");
    let why = format!("it belongs to cluster {our_id}, not to {their_id}");
    ours.says(&[0], &why).await;
    theirs.says(&[0], &why).await;

    let after = their_admin.status_of(&theirs.url(0)).await.expect("it answers");
    assert_eq!(
        (after.term, after.members.len(), after.cluster_id),
        (before.term, 1, Some(their_id)),
        "it has noticed nothing"
    );
    our_admin.remove_member(2).await.expect("it goes as it came");
    for fleet in [&ours, &theirs] {
        fleet.grants().await;
    }
}
