//! Membership changes that their leader does not see through.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_leader_died_half_way_is_finished_by_the_next_one() {
    let mut cluster = Cluster::start(4).await;
    let leader = cluster.leader().await;
    cluster.in_step().await;
    // Slow disks, so that there is a while between the two entries of a change.
    for (_, node) in cluster.running() {
        node.faults()
            .switches()
            .arm("raft.append", always("delay=100ms"))
            .unwrap();
    }
    let service = cluster.service(leader).clone();
    let stays: BTreeSet<u64> = cluster.members.iter().map(|member| member.id).collect();
    let leaves = (leader as u64 + 1) % 4 + 1;
    let stays: BTreeSet<u64> = stays.into_iter().filter(|id| *id != leaves).collect();
    let (asked, voters) = (service.clone(), stays.clone());
    let changing = tokio::spawn(async move { asked.change_members(voters).await });
    // Until all of them have the first entry: then whoever leads next has it, too.
    while !cluster
        .running()
        .all(|(_, node)| node.service().status().changing)
    {
        assert!(!changing.is_finished(), "it was done before anybody could look");
        tokio::task::yield_now().await;
    }
    // Whoever writes the second entry now, it is not the one who asked for the change.
    changing.abort();
    cluster.stop(leader).await;
    for (_, node) in cluster.running() {
        node.faults().switches().disarm("raft.append").unwrap();
    }

    eventually(SOON, "a leader that has finished the change", async || {
        let mut running = cluster.running().map(|(_, node)| node.service().status());
        running
            .any(|status| {
                let voters = status.members.iter().filter(|member| member.voter);
                let voters: BTreeSet<u64> = voters.map(|member| member.id).collect();
                status.role == Role::Leader && !status.changing && voters == stays
            })
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_has_just_died_is_not_counted_on_when_another_is_removed() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    cluster.in_step().await;
    let service = cluster.service(leader).clone();
    let (dead, alive) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.stop(dead).await;
    // Its last answer is younger than any silence that means something.
    let removed = service.remove_member(alive as u64 + 1).await;
    let Err(ServiceError::MembershipRefused(why)) = removed else {
        panic!("it was counted on: {removed:?}");
    };
    assert!(why.contains("would stand still"), "{why}");
    service
        .propose(Command::Expire)
        .await
        .expect("two of three go on");
    service
        .remove_member(dead as u64 + 1)
        .await
        .expect("the dead one can go");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_waits_for_a_dead_voter_says_so_and_is_finished_when_it_is_back() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    cluster.in_step().await;
    let service = cluster.service(leader).clone();
    let (dead, leaves) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.stop(dead).await;
    // Without asking around: as if it had died in the moment after.
    let stay = BTreeSet::from([leader as u64 + 1, dead as u64 + 1]);
    let (asked, voters) = (service.clone(), stay.clone());
    let changing = tokio::spawn(async move { asked.change_members(voters).await });
    eventually(SOON, "the change to begin", async || {
        service.status().changing.then_some(())
    })
    .await;
    changing.abort();
    let why = eventually(SOON, "it to say for whom it waits", async || {
        match service.remove_member(leaves as u64 + 1).await {
            Err(ServiceError::MembershipPending(why)) if why.contains("do not answer") => Some(why),
            _ => None,
        }
    })
    .await;
    assert!(why.contains(&format!("[{}]", dead + 1)), "{why}");

    cluster.launch(dead).await;
    eventually(SOON, "the change to be finished", async || {
        let mut running = cluster.running().map(|(_, node)| node.service().status());
        running
            .any(|status| {
                let voters = status.members.iter().filter(|member| member.voter);
                let voters: BTreeSet<u64> = voters.map(|member| member.id).collect();
                status.role == Role::Leader && !status.changing && voters == stay
            })
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_node_learns_of_it_and_grants_nothing() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let lead = cluster.service(leader).clone();
    let (voter, learner) = ((leader + 1) % 3, cluster.take_in().await);
    let session_id = open_session(&lead, 60_000).await;
    let term = lead.status().term;
    for at in [voter, learner] {
        // Cut off in the moment it is removed, as if the last entry had never reached it.
        lead.remove_member(at as u64 + 1).await.unwrap();
        let service = cluster.service(at);
        eventually(SOON, "it to know that it was removed", async || {
            (service.status().role == Role::Removed).then_some(())
        })
        .await;
        let acquired = service
            .acquire(session_id, AcquireId::new(1), names(&["gate"]), WaitMs::ZERO)
            .await;
        assert!(
            matches!(
                acquired,
                Err(ServiceError::NotLeader { .. } | ServiceError::NoLeader)
            ),
            "{acquired:?}"
        );
    }
    assert_eq!(lead.status().term, term, "it has unseated nobody");

    // Taken in again on the disk it had, it belongs again.
    let again = cluster.members[voter].clone();
    lead.add_learner(again).await.unwrap();
    lead.promote(voter as u64 + 1).await.unwrap();
    eventually(SOON, "it to follow again", async || {
        (cluster.service(voter).status().role == Role::Follower).then_some(())
    })
    .await;
}
