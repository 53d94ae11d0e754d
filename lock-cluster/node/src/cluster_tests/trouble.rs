//! Wrong secrets, strangers, cut cables, lost replies.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_know_the_secret_is_kept_out() {
    let mut cluster = Cluster::start(3).await;
    cluster.in_step().await;
    cluster.stop(2).await;
    let before = cluster.lead().await.status();
    cluster.secret = Secret::new("guessed");
    cluster.launch(2).await;
    // Two members agree on a hundred entries; the stranger, which all of them dial and which dials all of them,
    // hears of none.
    let service = cluster.lead().await.clone();
    for _ in 0..100 {
        service.propose(Command::Expire).await.unwrap();
    }
    let stranger = cluster.node(2).service().status();
    assert!(stranger.last_log <= before.last_log, "{stranger:?}");
    assert!(
        stranger.term <= before.term,
        "nobody answers its requests for votes"
    );
    cluster.stop(2).await;
    cluster.secret = Secret::new("only the members know");
    cluster.launch(2).await;
    cluster.in_step().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_behind_a_cut_cable_is_replaced_and_admits_that_it_does_not_know() {
    let cluster = Cluster::start(3).await;
    let old = cluster.leader().await;
    let session_id = open_session(cluster.service(old), 300_000).await;
    acquire_now(cluster.service(old), session_id, 1, "gate").await;
    let waiting = cluster.service(old).clone();
    let waiter = tokio::spawn(async move {
        waiting
            .acquire(session_id, AcquireId::new(2), names(&["gate"]), wait(60_000))
            .await
    });
    eventually(SOON, "it stands in line", async || {
        (cluster.service(old).status().counts.waiters == 1).then_some(())
    })
    .await;

    cluster.isolate(old);
    let acquired = cluster
        .service(old)
        .acquire(session_id, AcquireId::new(3), names(&["yard"]), WaitMs::ZERO)
        .await;
    assert!(
        matches!(acquired, Err(ServiceError::Unknown | ServiceError::NoLeader)),
        "{acquired:?}"
    );
    assert!(
        cluster.service(old).read(|_| ()).await.is_err(),
        "a read is not answered from before"
    );
    let waited = tokio::time::timeout(SOON, waiter)
        .await
        .expect("long before its wait is over")
        .unwrap();
    assert_eq!(
        waited,
        Err(ServiceError::Unknown),
        "others may know how it ended, this node does not"
    );

    let new = eventually(SOON, "another leader", async || {
        let leads = |at: &usize| *at != old && cluster.service(*at).status().role == Role::Leader;
        (0..3).find(leads)
    })
    .await;
    token(&acquire_now(cluster.service(new), session_id, 3, "yard").await);
    let again = cluster
        .service(new)
        .read(move |state| state.acquisition(session_id, AcquireId::new(2)))
        .await;
    assert_eq!(
        again,
        Ok(Some(AcquireAnswer::Queued)),
        "its place is kept for whoever asks again"
    );
    cluster.mend(old);
    cluster.in_step().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_is_an_unknown_outcome_and_asking_again_finds_it() {
    let cluster = Cluster::start(1).await;
    let node = cluster.node(cluster.leader().await);
    let session_id = open_session(node.service(), 60_000).await;
    node.faults()
        .switches()
        .arm("lock.after-commit", always("drop-reply"))
        .unwrap();
    let lost = node
        .service()
        .acquire(session_id, AcquireId::new(1), names(&["gate"]), WaitMs::ZERO)
        .await;
    assert_eq!(lost, Err(ServiceError::Unknown));
    node.faults().switches().disarm("lock.after-commit").unwrap();
    token(&acquire_now(node.service(), session_id, 1, "gate").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_on_the_peer_port_are_hung_up_on() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let cluster = Cluster::start(1).await;
    cluster.leader().await;
    let port: SocketAddr = cluster.members[0].peer_addr.parse().unwrap();
    assert_eq!(port.ip(), Ipv4Addr::LOCALHOST);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[4, 0, 0, 0, 1], b""] {
        let mut stranger = tokio::net::TcpStream::connect(port).await.unwrap();
        stranger.write_all(garbage).await.unwrap();
        let mut heard = Vec::new();
        // The challenge, and then the end: garbage at once, silence and half frames after a deadline.
        let _ = tokio::time::timeout(SOON, stranger.read_to_end(&mut heard))
            .await
            .expect("it is hung up on");
    }
    cluster.lead().await.propose(Command::Expire).await.unwrap();
}
