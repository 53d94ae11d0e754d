//! Members that come and go while clients hold locks and ask for more.

use std::time::Duration;

use lock_client::LockError;
use testkit::eventually;

use crate::cluster::{Cluster, SOON};
use crate::load::Load;

const SESSIONS: usize = 50;
/// Grants between two changes: enough to know that each state of the cluster works.
const A_WHILE: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_three_five_three_members_under_load_lose_no_session_and_grant_nothing_twice() {
    let mut cluster = Cluster::start_with_guests(1, 5).await;
    let load = Load::start(&cluster, SESSIONS).await;
    load.goes_on(A_WHILE).await;

    // 1 → 3, straight to voters; 3 → 5, as learners first.
    for at in [1, 2] {
        cluster.join(at, true).await;
        load.goes_on(A_WHILE).await;
    }
    for at in [3, 4] {
        cluster.join(at, false).await;
        let id = at as u64 + 1;
        cluster
            .admin()
            .promote_member(id)
            .await
            .expect("it has caught up");
        load.goes_on(A_WHILE).await;
    }
    assert_eq!(cluster.voters().await, [1, 2, 3, 4, 5]);

    // 5 → 4: the leader itself.
    let leader = cluster.leader().await;
    cluster.remove(leader).await;
    load.goes_on(A_WHILE).await;
    assert!(!cluster.voters().await.contains(&(leader as u64 + 1)));

    // A node dies and its disk with it; another, under a new id and on an empty disk, takes its place.
    let dead = cluster.follower().await;
    cluster.stop(dead).await;
    cluster.join(5, true).await;
    cluster.remove(dead).await;
    load.goes_on(A_WHILE).await;

    // 4 → 3.
    let one_more = cluster.follower().await;
    cluster.remove(one_more).await;
    load.goes_on(A_WHILE).await;
    let voters = cluster.voters().await;
    assert_eq!(voters.len(), 3, "{voters:?}");
    assert!(voters.contains(&6), "{voters:?}");

    let grants = load.ends_well().await;
    println!("{grants} grants while the members changed");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_disk_is_turned_away_under_load_and_comes_back_under_its_id_once_it_was_removed() {
    let mut cluster = Cluster::start(3).await;
    let load = Load::start(&cluster, SESSIONS).await;
    load.goes_on(A_WHILE).await;
    // A follower, and then whoever leads.
    for leads in [false, true] {
        let lost = match leads {
            false => cluster.follower().await,
            true => cluster.leader().await,
        };
        cluster.stop(lost).await;
        cluster.lose_disk(lost);
        load.goes_on(A_WHILE).await;

        // As if nothing had happened, `--bootstrap` and all.
        cluster.launch(lost).await;
        let why = tokio::time::timeout(SOON, cluster.node(lost).failed()).await;
        let why = why.expect("it notices in time");
        assert!(why.contains("another disk"), "{why}");
        cluster.stop(lost).await;
        load.goes_on(A_WHILE).await;

        // In two steps, as it should be: what was removed has promised nothing any more.
        cluster.remove(lost).await;
        load.goes_on(A_WHILE).await;
        cluster.join(lost, true).await;
        load.goes_on(A_WHILE).await;
        assert_eq!(cluster.voters().await, [1, 2, 3]);
    }
    let grants = load.ends_well().await;
    println!("{grants} grants while disks were lost");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_under_load_loses_no_session_and_grants_nothing_twice() {
    let mut cluster = Cluster::start(3).await;
    let load = Load::start(&cluster, SESSIONS).await;
    for at in [0, 1, 2] {
        cluster.stop(at).await;
        load.goes_on(A_WHILE).await;
        cluster.start_all().await;
        // The next one goes down only when this one is back in step.
        let target = cluster.node(cluster.leader().await).service().status().applied;
        eventually(SOON, "the restarted node to catch up", async || {
            (cluster.node(at).service().status().applied >= target).then_some(())
        })
        .await;
        load.goes_on(A_WHILE).await;
    }
    let grants = load.ends_well().await;
    println!("{grants} grants while the nodes were restarted");
    cluster.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_administrators_at_once_do_not_undo_each_others_change() {
    let mut cluster = Cluster::start_with_guests(1, 4).await;
    for at in 1..5 {
        cluster.join(at, false).await;
    }
    let (one, other, third, fourth) = (cluster.admin(), cluster.admin(), cluster.admin(), cluster.admin());
    let (a, b, c, d) = tokio::join!(
        one.promote_member(2),
        other.promote_member(3),
        third.promote_member(4),
        fourth.promote_member(5)
    );
    for answer in [a, b, c, d] {
        answer.expect("each is promoted in its turn");
    }
    assert_eq!(cluster.voters().await, [1, 2, 3, 4, 5]);
}

/// Waits until the leader has not heard from a node for longer than it counts on it.
async fn silent(cluster: &Cluster, at: usize) {
    let leader = cluster.node(cluster.leader().await).service().clone();
    eventually(SOON, "a dead node to be noticed", async || {
        let members = leader.status().members;
        let dead = members.iter().find(|member| member.id == at as u64 + 1)?;
        dead.silent_ms.is_none_or(|ms| ms > 3_000).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_would_stop_the_cluster_is_refused() {
    let mut cluster = Cluster::start_with_guests(3, 1).await;
    let refused = |answer: Result<serde_json::Value, LockError>, expected: &str| match answer {
        Err(LockError::Invalid { slug, detail }) if slug == expected => detail,
        other => panic!("{expected} was expected, not {other:?}"),
    };
    let unknown = cluster.admin().promote_member(9).await;
    assert!(refused(unknown, "membership-refused").contains("add it first"));

    // Two of three that run may go on as two, but not as one that runs of two.
    let dead = cluster.follower().await;
    cluster.stop(dead).await;
    let alive = cluster.follower().await as u64 + 1;
    silent(&cluster, dead).await;
    let detail = refused(cluster.admin().remove_member(alive).await, "membership-refused");
    assert!(detail.contains("would stand still"), "{detail}");
    cluster
        .admin()
        .remove_member(dead as u64 + 1)
        .await
        .expect("the dead one can go");
    assert_eq!(cluster.voters().await.len(), 2);

    // A learner that has just died is not made a voter, either.
    cluster.join(3, false).await;
    let leader = cluster.node(cluster.leader().await).service().clone();
    eventually(SOON, "the learner to answer the leader", async || {
        let members = leader.status().members;
        let learner = members.iter().find(|member| member.id == 4)?;
        learner.silent_ms.and(learner.matched)
    })
    .await;
    cluster.stop(3).await;
    tokio::time::timeout(Duration::from_secs(40), async {
        let absent = cluster.admin().promote_member(4).await;
        assert!(refused(absent, "membership-refused").contains("does not answer"));
    })
    .await
    .expect("it is told in time");

    // And what is there already stays what it is.
    cluster
        .admin()
        .remove_member(4)
        .await
        .expect("a learner goes, too");
    cluster.admin().remove_member(4).await.expect("again is no error");
    let lone = Cluster::start(1).await;
    refused(lone.admin().remove_member(1).await, "last-member");
}
