//! One cluster is founded, once, and its members know it by its name.

use std::fs;

use testkit::found_within;

use super::*;
use crate::raft::ClusterId;

/// Longer than any founder listens, and several times as long as an election takes.
const LONG_ENOUGH: Duration = Duration::from_secs(7);

/// Nobody leads, for as long as that.
async fn nobody_founds_anything(cluster: &Cluster) {
    let founded = found_within(LONG_ENOUGH, async || {
        cluster
            .running()
            .find_map(|(_, node)| node.service().status().last_log)
    });
    assert_eq!(founded.await, None, "somebody has begun a log");
}

/// The cluster that all who run are of.
async fn one_cluster(cluster: &Cluster) -> ClusterId {
    eventually(SOON, "all to be of one cluster", async || {
        let mut known = cluster.running().map(|(_, node)| node.service().status().cluster);
        let first = known.next()??;
        known.all(|known| known == Some(first)).then_some(first)
    })
    .await
}

fn identity(cluster: &Cluster, at: usize) -> String {
    fs::read_to_string(cluster.dirs[at].path().join("identity")).unwrap()
}

/// The identity of a member, once it has the cluster's name in writing: the log has it first.
async fn identity_of(cluster: &Cluster, at: usize, name: ClusterId) -> String {
    let line = format!("cluster {name}\n");
    eventually(SOON, "its identity to name the cluster", async || {
        Some(identity(cluster, at)).filter(|text| text.ends_with(&line))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_founded_when_all_are_there_and_each_has_its_name_in_writing() {
    let mut cluster = Cluster::stopped(3);
    cluster.wants_all = true;
    for at in [0, 1] {
        cluster.launch(at).await;
    }
    nobody_founds_anything(&cluster).await;
    cluster.launch(2).await;
    let leader = cluster.leader().await;
    cluster.in_step().await;
    let members = cluster.service(leader).status().members;
    assert!(
        members.iter().all(|member| member.recorded),
        "the first entry has all disks"
    );
    let name = one_cluster(&cluster).await;
    for at in 0..3 {
        identity_of(&cluster, at, name).await;
    }

    // Whoever is taken in later is of it, too.
    let new = cluster.take_in().await;
    assert_eq!(one_cluster(&cluster).await, name);
    identity_of(&cluster, new, name).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_founds_when_the_last_one_is_late_and_takes_it_in_as_it_comes() {
    let mut cluster = Cluster::stopped(3);
    for at in [0, 1] {
        cluster.launch(at).await;
    }
    let leader = cluster.leader().await;
    let name = one_cluster(&cluster).await;
    let session_id = open_session(cluster.service(leader), 300_000).await;
    acquire_now(cluster.service(leader), session_id, 1, "gate").await;

    cluster.launch(2).await;
    cluster.in_step().await;
    assert_eq!(one_cluster(&cluster).await, name);
    eventually(SOON, "the late one's disk to be in the log, too", async || {
        let members = cluster.lead().await.status().members;
        members.iter().all(|member| member.recorded).then_some(())
    })
    .await;
}

/// Two of three have lost their disks (one of them may as well never have had anything on it), and the third, which has
/// the cluster's only copy, is down. The two are a majority, and must not found another cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_of_empty_disks_founds_no_second_cluster_while_the_third_may_have_the_first() {
    let mut cluster = Cluster::start(3).await;
    let session_id = open_session(cluster.lead().await, 300_000).await;
    acquire_now(cluster.lead().await, session_id, 1, "gate").await;
    cluster.in_step().await;
    let kept = cluster.service(1).status().last_log;
    let name = one_cluster(&cluster).await;
    for at in 0..3 {
        cluster.stop(at).await;
    }
    cluster.wants_all = true;
    for at in [0, 2] {
        cluster.dirs[at] = tempfile::tempdir().unwrap();
        cluster.launch(at).await;
    }
    nobody_founds_anything(&cluster).await;

    // The one that remembers tells both what they have lost.
    cluster.launch(1).await;
    for at in [0, 2] {
        let why = tokio::time::timeout(SOON, cluster.node(at).failed()).await;
        let why = why.expect("it notices in time");
        assert!(why.contains("another disk"), "{why}");
    }
    let rest = cluster.service(1).status();
    assert_eq!(rest.cluster, Some(name));
    assert!(rest.last_log >= kept, "all of it is still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_founder_that_crashed_between_its_log_and_its_identity_makes_good_for_it() {
    let mut cluster = Cluster::start(1).await;
    let name = one_cluster(&cluster).await;
    let whole = identity_of(&cluster, 0, name).await;
    cluster.stop(0).await;
    let file = cluster.dirs[0].path().join("identity");
    let without: String = whole
        .lines()
        .filter(|line| !line.starts_with("cluster"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_ne!(whole, without);
    fs::write(&file, &without).unwrap();
    cluster.launch(0).await;
    assert_eq!(identity(&cluster, 0), whole);
    assert_eq!(one_cluster(&cluster).await, name);
    cluster.stop(0).await;

    // A log that is another cluster's than the directory says is nobody's.
    let other = ClusterId::from_u128(7);
    fs::write(&file, format!("{without}cluster {other}\n")).unwrap();
    let started = Node::start_with(cluster.config(0), SNAPSHOT_EVERY).await;
    let error = format!("{:#}", started.err().expect("it does not start"));
    assert!(error.contains("belongs to cluster"), "{error}");
}

/// It crashed between the two, say, as it was taken in; or its log was cut down to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_of_a_cluster_and_has_nothing_of_its_log_counts_as_the_clusters() {
    // The one that would found, and the one that is asked.
    for of_another in [0, 1] {
        let mut cluster = Cluster::stopped(2);
        cluster.launch(of_another).await;
        cluster.stop(of_another).await;
        let file = cluster.dirs[of_another].path().join("identity");
        let text = identity(&cluster, of_another);
        fs::write(&file, format!("{text}cluster {}\n", ClusterId::from_u128(7))).unwrap();
        for at in [0, 1] {
            cluster.launch(at).await;
        }
        nobody_founds_anything(&cluster).await;
    }
}
