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
