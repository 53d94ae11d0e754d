//! Members that come back without their memory.

use testkit::found_within;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::HostedNode;

/// What the node says when it has to stop.
async fn stops(cluster: &Cluster, at: usize) -> String {
    tokio::time::timeout(SOON, cluster.node(at).failed())
        .await
        .expect("it notices in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lost_its_disk_is_turned_away_and_told_how_to_come_back() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let lost = (leader + 1) % 3;
    cluster.in_step().await;
    cluster.stop(lost).await;
    cluster.dirs[lost] = tempfile::tempdir().unwrap();
    cluster.launch(lost).await;
    let why = stops(&cluster, lost).await;
    assert!(why.contains("add it under a new id"), "{why}");
    let status = cluster.service(lost).status();
    assert_eq!(
        (status.applied, status.term),
        (None, 0),
        "it was sent nothing, and has voted for nobody"
    );
    cluster.stop(lost).await;

    // So it is done.
    let new = cluster.take_in().await;
    let lead = cluster.lead().await;
    lead.remove_member(lost as u64 + 1).await.unwrap();
    cluster.in_step().await;
    assert_eq!(cluster.service(new).status().members.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_founder_that_lost_its_disk_founds_no_second_cluster() {
    let mut cluster = Cluster::start(3).await;
    let session_id = open_session(cluster.lead().await, 300_000).await;
    let held = acquire_now(cluster.lead().await, session_id, 1, "gate").await;
    cluster.in_step().await;
    for at in 0..3 {
        cluster.stop(at).await;
    }
    cluster.dirs[0] = tempfile::tempdir().unwrap();
    // Nobody is there to tell it that there is a cluster: it waits for them, instead of founding one alone.
    cluster.launch(0).await;
    cluster.launch(1).await;
    let why = stops(&cluster, 0).await;
    assert!(why.contains("add it under a new id"), "{why}");
    assert_eq!(cluster.service(0).status().members, []);
    cluster.stop(0).await;

    cluster.launch(2).await;
    let lead = cluster.lead().await;
    assert_eq!(
        acquire_now(lead, session_id, 1, "gate").await,
        held,
        "the others remember"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_a_member_that_was_taken_in_is_recorded_before_it_votes() {
    let mut cluster = Cluster::start(2).await;
    let new = cluster.take_in().await;
    let members = cluster.lead().await.status().members;
    assert!(members.iter().all(|member| member.recorded), "{members:?}");
    cluster.in_step().await;
    cluster.stop(new).await;
    cluster.dirs[new] = tempfile::tempdir().unwrap();
    cluster.launch(new).await;
    let why = stops(&cluster, new).await;
    assert!(why.contains("add it under a new id"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_taken_in_again_under_its_id_is_known_by_the_disk_it_has_now() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    cluster.in_step().await;
    let service = cluster.service(leader).clone();
    let lost = (leader + 1) % 3;
    let id = lost as u64 + 1;
    cluster.stop(lost).await;
    service.remove_member(id).await.unwrap();
    service.add_learner(cluster.members[lost].clone()).await.unwrap();
    let recorded = || {
        let members = service.status().members;
        members.iter().any(|member| member.id == id && member.recorded)
    };
    // It does not run: the leader has nothing to record but what it has seen before the removal.
    let shown = found_within(Duration::from_millis(1_500), async || recorded().then_some(())).await;
    assert!(shown.is_none(), "the disk that is gone was recorded again");

    cluster.dirs[lost] = tempfile::tempdir().unwrap();
    cluster.launch(lost).await;
    service.promote(id).await.unwrap();
    eventually(SOON, "its disk to be recorded", async || recorded().then_some(())).await;
    cluster.in_step().await;
}

/// It was not told to stop, by anybody that it has spoken to so far.
async fn goes_on(cluster: &Cluster, at: usize) {
    let told = tokio::time::timeout(Duration::from_millis(200), cluster.node(at).failed()).await;
    assert!(told.is_err(), "it stops: {told:?}");
}

/// Takes a member out, and in again under its id on an empty disk, as a voter.
async fn replace_disk(cluster: &mut Cluster, leader: usize, at: usize) {
    let service = cluster.service(leader).clone();
    cluster.stop(at).await;
    service.remove_member(at as u64 + 1).await.unwrap();
    cluster.dirs[at] = tempfile::tempdir().unwrap();
    cluster.launch(at).await;
    service.add_learner(cluster.members[at].clone()).await.unwrap();
    service.promote(at as u64 + 1).await.unwrap();
    eventually(SOON, "its disk to be recorded", async || {
        let status = cluster.service(at).status();
        status.members.iter().all(|member| member.recorded).then_some(())
    })
    .await;
}

/// It goes by a record that is out of date, and there is nobody but the very member that it would turn away to tell it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_learner_that_slept_through_a_new_disk_stops_nobody_and_is_led_by_who_has_it() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let (renewed, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let asleep = cluster.add_learner().await;
    cluster.in_step().await;
    let slept_from = cluster.service(asleep).status().last_log;
    cluster.stop(asleep).await;
    replace_disk(&mut cluster, leader, renewed).await;
    // One by one the others leave, until the one with the new disk leads alone.
    let service = cluster.service(leader).clone();
    for at in [third, leader] {
        service.remove_member(at as u64 + 1).await.unwrap();
        cluster.stop(at).await;
    }
    assert_eq!(cluster.leader().await, renewed);

    cluster.launch(asleep).await;
    cluster.in_step().await;
    assert!(cluster.service(asleep).status().last_log > slept_from);
    goes_on(&cluster, renewed).await;
}

/// A removed node that still runs hears of no change: what it has on record of the others is never renewed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_removed_turns_no_new_disk_away() {
    let mut cluster = Cluster::start(4).await;
    let leader = cluster.leader().await;
    let (removed, renewed) = ((leader + 1) % 4, (leader + 2) % 4);
    cluster.in_step().await;
    let service = cluster.service(leader).clone();
    service.remove_member(removed as u64 + 1).await.unwrap();
    eventually(SOON, "it to know that it was removed", async || {
        (cluster.service(removed).status().role == Role::Removed).then_some(())
    })
    .await;
    replace_disk(&mut cluster, leader, renewed).await;
    goes_on(&cluster, renewed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_founder_of_a_cluster_that_grew_founds_no_second_one_on_an_empty_disk() {
    let mut cluster = Cluster::start(1).await;
    for _ in 0..2 {
        cluster.take_in().await;
    }
    cluster.in_step().await;
    let founder = cluster.config(0);
    cluster.stop(0).await;
    cluster.dirs[0] = tempfile::tempdir().unwrap();
    // Told of nobody else, as on the day when it founded the cluster of one.
    let alone = NodeConfig {
        members: vec![cluster.members[0].clone()],
        data_dir: cluster.dirs[0].path().to_owned(),
        ..founder
    };
    let leader = cluster.leader().await;
    assert_ne!(leader, 0);
    cluster.nodes[0] = Some(Node::start_with(alone, SNAPSHOT_EVERY).await.unwrap());
    let long_enough = Duration::from_secs(3);
    let led = found_within(long_enough, async || cluster.service(0).status().leader).await;
    assert_eq!(led, None, "it leads alone");
    assert_eq!(cluster.service(0).status().members, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hosted_member_that_lost_its_disk_closes_its_ports_before_its_host_has_drained() {
    let mut cluster = Cluster::start(3).await;
    let lost = (cluster.leader().await + 1) % 3;
    cluster.in_step().await;
    cluster.stop(lost).await;
    cluster.dirs[lost] = tempfile::tempdir().unwrap();
    let program = CancellationToken::new();
    let hosted = HostedNode::start(Some(cluster.config(lost)), &program).await;
    let hosted = hosted.unwrap().expect("it is told to host one");
    tokio::time::timeout(SOON, program.cancelled())
        .await
        .expect("the program is told to end");
    for addr in [
        &cluster.members[lost].peer_addr,
        &cluster.members[lost].client_addr,
    ] {
        eventually(SOON, "a port to be closed", async || {
            TcpStream::connect(addr).await.err()
        })
        .await;
    }
    hosted.leave().await;
}
