//! An acquire that is dropped at any of its await points leaves nothing: no holder, no waiter, nobody to be woken.

use testkit::cut_after;

use super::*;

/// More await points than an acquire has.
const POLLS_MAX: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_of_a_free_lock_is_dropped_at_each_await() {
    let cluster = Cluster::start(1).await;
    let service = cluster.lead().await.clone();
    let session_id = open_session(&service, 60_000).await;
    for polls in 0..POLLS_MAX {
        let id = AcquireId::new(polls as u64 + 1);
        let acquire = service.acquire(session_id, id, names(&["gate"]), wait(30_000));
        if let Some(answer) = cut_after(polls, acquire).await {
            token(&answer.unwrap().unwrap());
            assert!(polls >= 2, "it waits for the log at least");
            return;
        }
        nothing_is_left(&service).await;
    }
    panic!("it does not complete in {POLLS_MAX} polls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_of_a_held_lock_is_dropped_at_each_await() {
    let cluster = Cluster::start(1).await;
    let service = cluster.lead().await.clone();
    let holder = open_session(&service, 60_000).await;
    let session_id = open_session(&service, 60_000).await;
    for polls in 0..POLLS_MAX {
        let id = AcquireId::new(polls as u64 + 1);
        acquire_now(&service, holder, id.get(), "gate").await;
        let acquire = service.acquire(session_id, id, names(&["gate"]), wait(30_000));
        // Handed over as soon as it stands in line: so it is also dropped between the grant and its answer.
        let hand_over = async {
            eventually(SOON, "it stands in line", async || {
                (service.status().counts.waiters == 1).then_some(())
            })
            .await;
            release(&service, holder, id).await;
        };
        let cut = tokio::select! {
            biased;
            cut = cut_after(polls, acquire) => cut,
            cut = async { hand_over.await; std::future::pending().await } => cut,
        };
        // Again, or for the first time if it was cut before.
        release(&service, holder, id).await;
        if let Some(answer) = cut {
            token(&answer.unwrap().unwrap());
            assert!(polls >= 3, "it waits for the log and for its turn");
            return;
        }
        nothing_is_left(&service).await;
    }
    panic!("it does not complete in {POLLS_MAX} polls");
}

async fn release(service: &LockService, session_id: SessionId, acquire_id: AcquireId) {
    let released = service
        .propose(Command::Release {
            session_id,
            acquire_id,
        })
        .await;
    assert_eq!(released, Ok(Reply::Released));
}

async fn nothing_is_left(service: &LockService) {
    eventually(SOON, "nothing of it is left", async || {
        let status = service.status();
        let counts = status.counts;
        ((counts.locks, counts.waiters, status.waiting_here) == (0, 0, 0)).then_some(())
    })
    .await;
}
