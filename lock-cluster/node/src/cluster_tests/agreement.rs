//! Nodes that agree: the same log, the same answers, from any node, through stops, restarts and snapshots.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_elect_a_leader_and_apply_the_same() {
    let cluster = Cluster::start(3).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 60_000).await;
    let answer = acquire_now(&service, session_id, 1, "gate").await;
    cluster.in_step().await;
    let leader = service.status().id;
    for (_, node) in cluster.running() {
        let status = node.service().status();
        assert_eq!(status.counts.holders, 1);
        assert_eq!(status.members.len(), 3);
        assert_eq!(status.leader.as_ref().map(|leader| leader.id), Some(leader));
        if status.id != leader {
            let refused = node.service().propose(Command::Expire).await.unwrap_err();
            let client_url = cluster.members[leader as usize - 1].client_url();
            assert!(
                matches!(&refused, ServiceError::NotLeader { leader } if leader.client_url == client_url),
                "{refused:?}"
            );
        }
    }
    let held = service
        .read(|state| state.lock("gate").and_then(|lock| lock.holder))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(held.fencing_token.get(), token(&answer));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_survive_the_leader_and_a_restart_of_all() {
    let mut cluster = Cluster::start(3).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 300_000).await;
    let first = acquire_now(&service, session_id, 1, "gate").await;

    let old = cluster.leader().await;
    cluster.stop(old).await;
    let again = acquire_now(cluster.lead().await, session_id, 1, "gate").await;
    assert_eq!(again, first, "another node gives the same answer");

    for at in 0..3 {
        if at != old {
            cluster.stop(at).await;
        }
    }
    for at in 0..3 {
        cluster.launch(at).await;
    }
    let service = cluster.lead().await;
    assert_eq!(
        acquire_now(service, session_id, 1, "gate").await,
        first,
        "and so do all of them from their disks"
    );
    let next = acquire_now(service, session_id, 2, "yard").await;
    assert!(token(&next) > token(&first));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lagging_and_a_new_node_are_given_the_snapshot() {
    let mut cluster = Cluster::start(3).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 300_000).await;
    let first = acquire_now(&service, session_id, 1, "gate").await;
    let leader = cluster.leader().await;
    let (lagging, lost) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.in_step().await;
    cluster.stop(lagging).await;
    // Far more entries than the log keeps behind a snapshot.
    for _ in 0..4 * SNAPSHOT_EVERY {
        service.propose(Command::Expire).await.unwrap();
    }
    eventually(SOON, "a snapshot", async || {
        (service.status().snapshot >= Some(2 * SNAPSHOT_EVERY)).then_some(())
    })
    .await;

    cluster.launch(lagging).await;
    cluster.in_step().await;

    // A disk is lost. Another member, under a new id and with nothing on its disk, takes the place.
    cluster.stop(lost).await;
    let new = cluster.take_in().await;
    let lead = cluster.lead().await;
    lead.remove_member(lost as u64 + 1).await.unwrap();
    cluster.in_step().await;
    for at in [lagging, new] {
        let skipped = cluster.node(at).service().events_from(1).await;
        assert!(
            skipped.is_err(),
            "its state came from a snapshot, which has no events"
        );
    }

    // Only the two that were given a snapshot are left, and must answer like those that applied it all.
    cluster.stop(leader).await;
    let again = acquire_now(cluster.lead().await, session_id, 1, "gate").await;
    assert_eq!(again, first, "remembered answers travel in snapshots");
    let repeated = cluster
        .lead()
        .await
        .propose(Command::Release {
            session_id,
            acquire_id: AcquireId::new(1),
        })
        .await;
    assert_eq!(repeated, Ok(Reply::Released));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_that_was_given_a_snapshot_and_leads_answers_as_the_old_ones_did() {
    let mut cluster = Cluster::start(1).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 300_000).await;
    let held = acquire_now(&service, session_id, 1, "gate").await;
    let refused = acquire_now(&service, session_id, 2, "gate").await;
    acquire_now(&service, session_id, 3, "yard").await;
    let release = |id| Command::Release {
        session_id,
        acquire_id: AcquireId::new(id),
    };
    assert_eq!(service.propose(release(3)).await, Ok(Reply::Released));
    // Far more entries than the log keeps behind a snapshot.
    for _ in 0..4 * SNAPSHOT_EVERY {
        service.propose(Command::Expire).await.unwrap();
    }
    let new = cluster.take_in().await;
    let skipped = cluster.service(new).events_from(1).await;
    assert!(
        skipped.is_err(),
        "its state came from a snapshot, which has no events"
    );
    cluster.lead().await.remove_member(1).await.unwrap();
    let lead = eventually(SOON, "the new one to lead", async || {
        let service = cluster.service(new);
        (service.status().role == Role::Leader && service.propose(Command::Expire).await.is_ok())
            .then_some(service)
    })
    .await;
    eventually(
        SOON,
        "the old one to step down, and to name itself no longer",
        async || {
            let status = cluster.service(0).status();
            let names_itself = status.leader.is_some_and(|leader| leader.id == status.id);
            (status.role == Role::Removed && !names_itself).then_some(())
        },
    )
    .await;

    assert_eq!(acquire_now(lead, session_id, 1, "gate").await, held);
    assert_eq!(acquire_now(lead, session_id, 2, "gate").await, refused);
    assert_eq!(
        acquire_now(lead, session_id, 3, "yard").await,
        AcquireAnswer::Released
    );
    let names_differ = lead
        .acquire(session_id, AcquireId::new(1), names(&["yard"]), WaitMs::ZERO)
        .await;
    assert_eq!(names_differ, Ok(Err(Refusal::NamesDiffer)));
    let next = acquire_now(lead, session_id, 4, "yard").await;
    assert!(token(&next) > token(&held));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_tells_the_same_story_on_every_node() {
    let cluster = Cluster::start(3).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 60_000).await;
    acquire_now(&service, session_id, 1, "gate").await;
    service
        .propose(Command::CloseSession { session_id })
        .await
        .unwrap();
    cluster.in_step().await;

    let mut stories = BTreeSet::new();
    for (_, node) in cluster.running() {
        let mut feed = node.service().events_from(1).await.unwrap();
        let mut story = Vec::new();
        while story
            .iter()
            .filter(|event| matches!(event, FeedEvent::Lock(lock_core::Event::SessionClosed { .. })))
            .count()
            == 0
        {
            story.extend(
                tokio::time::timeout(SOON, feed.next())
                    .await
                    .unwrap()
                    .unwrap()
                    .events,
            );
        }
        assert!(
            matches!(story.first(), Some(FeedEvent::LeaderChanged { .. })),
            "{story:?}"
        );
        stories.insert(format!("{story:?}"));
    }
    assert_eq!(stories.len(), 1, "{stories:#?}");
}
