//! Those who wait, and those who have stopped waiting.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_is_woken_by_the_release_and_in_order() {
    let cluster = Cluster::start(3).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 60_000).await;
    let held = acquire_now(&service, session_id, 1, "gate").await;
    let mut waiters = Vec::new();
    for id in 2..=4 {
        let waiting = service.clone();
        waiters.push(tokio::spawn(async move {
            waiting
                .acquire(session_id, AcquireId::new(id), names(&["gate"]), wait(30_000))
                .await
        }));
        eventually(SOON, "it stands in line", async || {
            (service.status().counts.waiters == id as usize - 1).then_some(())
        })
        .await;
    }
    let mut last = token(&held);
    for (waiter, id) in waiters.into_iter().zip(1..) {
        let released = service
            .propose(Command::Release {
                session_id,
                acquire_id: AcquireId::new(id),
            })
            .await;
        assert_eq!(released, Ok(Reply::Released));
        let granted = token(&waiter.await.unwrap().unwrap().unwrap());
        assert!(granted > last);
        last = granted;
    }
    assert_eq!(service.status().waiting_here, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_over_and_a_wait_that_was_dropped_leave_nothing() {
    let cluster = Cluster::start(1).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 60_000).await;
    acquire_now(&service, session_id, 1, "gate").await;
    let over = service
        .acquire(session_id, AcquireId::new(2), names(&["gate"]), wait(100))
        .await;
    assert_eq!(over, Ok(Ok(AcquireAnswer::TimedOut)));

    let waiting = service.clone();
    let dropped = tokio::spawn(async move {
        waiting
            .acquire(session_id, AcquireId::new(3), names(&["gate"]), wait(60_000))
            .await
    });
    eventually(SOON, "it stands in line", async || {
        (service.status().counts.waiters == 1).then_some(())
    })
    .await;
    dropped.abort();
    eventually(SOON, "its place is given up", async || {
        (service.status().counts.waiters == 0).then_some(())
    })
    .await;
    assert_eq!(service.status().waiting_here, 0);
    let again = acquire_now(&service, session_id, 3, "gate").await;
    assert_eq!(again, AcquireAnswer::Abandoned, "and stays given up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_session_expires_also_across_an_election() {
    let mut cluster = Cluster::start(3).await;
    let service = cluster.lead().await.clone();
    let silent = open_session(&service, 1_000).await;
    let waiting = open_session(&service, 300_000).await;
    acquire_now(&service, silent, 1, "gate").await;
    cluster.in_step().await;
    let old = cluster.leader().await;
    cluster.stop(old).await;
    let service = cluster.lead().await;
    let granted = service
        .acquire(waiting, AcquireId::new(1), names(&["gate"]), wait(15_000))
        .await;
    token(&granted.unwrap().unwrap());
    let late = service
        .propose(Command::KeepAlive {
            session_id: silent,
            acknowledged: None,
        })
        .await;
    assert_eq!(late, Ok(Reply::Refused(Refusal::SessionExpired)));
}
