//! The event stream: in log order, none twice, and a way on where the history is gone.

use std::time::Duration;

use lock_client::{EventFeed, EventsFrom, FeedEvent};
use testkit::eventually;

use crate::cluster::{Cluster, SOON};

async fn next(feed: &mut EventFeed) -> FeedEvent {
    let event = tokio::time::timeout(SOON, feed.next())
        .await
        .expect("an event in time");
    event.expect("the stream holds").expect("the stream goes on")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_tell_a_locks_whole_life_in_order() {
    let cluster = Cluster::start(3).await;
    let admin = cluster.admin();
    let mut feed = admin.events(EventsFrom::Index(0)).await.expect("a stream");
    let session = cluster.session().await;
    let token = session.granted(1, &["gate"], 0).await;
    let other = cluster.session_with(Duration::from_millis(700)).await;
    let waiting = tokio::spawn(async move { other.acquire(1, &["gate"], 60_000).await });
    waiting
        .await
        .expect("no panic")
        .expect_problem(410, "session-expired");
    session.release(1).await.expect(204);
    session.close().await.expect(204);

    let mut seen = Vec::new();
    loop {
        let event = next(&mut feed).await;
        let closed = event.event == "session-closed" && event.data["reason"] == "closed";
        seen.push(event);
        if closed {
            break;
        }
    }
    let names: Vec<&str> = seen.iter().map(|event| event.event.as_str()).collect();
    let story = [
        "leader-changed",
        "session-opened",
        "granted",
        "session-opened",
        "queued",
        "wait-ended",
        "session-closed",
        "released",
        "session-closed",
    ];
    let told: Vec<&str> = names
        .iter()
        .copied()
        .skip_while(|name| *name != "session-opened")
        .collect();
    assert_eq!(told, story[1..]);
    assert!(names.starts_with(&story[..1]), "{names:?}");
    let granted = seen.iter().find(|event| event.event == "granted").expect("told");
    assert_eq!(granted.data["fencing_token"], token);
    let indexes: Vec<u64> = seen
        .iter()
        .filter_map(|event| event.data["index"].as_u64())
        .collect();
    assert!(indexes.len() == seen.len() && indexes.is_sorted(), "{indexes:?}");

    // From the middle, and from another node: the same events from there on.
    let from = indexes[indexes.len() - 3];
    let mut again = admin.events(EventsFrom::Index(from)).await.expect("a stream");
    for expected in seen
        .iter()
        .filter(|event| event.data["index"].as_u64() >= Some(from))
    {
        assert_eq!(next(&mut again).await, *expected);
    }

    // From between two events of one index.
    let same_index = |pair: &&[FeedEvent]| pair[0].data["index"] == pair[1].data["index"];
    let pair = seen
        .windows(2)
        .find(same_index)
        .expect("an expiry ends the wait and the session");
    let behind = pair[0].id.as_deref().expect("a position");
    let mut rest = admin.events(EventsFrom::Behind(behind)).await.expect("a stream");
    assert_eq!(next(&mut rest).await, pair[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_comes_back_goes_on_behind_the_last_event_it_saw() {
    let cluster = Cluster::start(1).await;
    let session = cluster.session().await;
    session.granted(1, &["a"], 0).await;
    session.granted(2, &["b"], 0).await;
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let read = async |last_event_id: Option<&str>, from: &str, until: usize| {
        let mut request = http.get(format!("{}/v1/events{from}", cluster.url(0)));
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let mut response = request.send().await.expect("a stream");
        let mut text = String::new();
        while text.matches("\nid: ").count() + usize::from(text.starts_with("id: ")) < until
            || !text.ends_with("\n\n")
        {
            let chunk = tokio::time::timeout(SOON, response.chunk())
                .await
                .expect("in time")
                .expect("it holds");
            text.push_str(&String::from_utf8_lossy(&chunk.expect("it goes on")));
        }
        let ids: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("id: ").map(str::to_owned))
            .collect();
        ids
    };
    let all = read(None, "?from=0", 4).await;
    let rest = read(Some(&all[1]), "", 2).await;
    assert_eq!(rest, all[2..4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_history_is_gone_the_state_is_told_instead() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin();
    let session = cluster.session().await;
    session.granted(1, &["kept"], 0).await;
    // More events than a node remembers.
    let client = cluster.client("busy", Duration::from_secs(10)).await;
    let mut feed = eventually(
        Duration::from_secs(120),
        "the first events to be forgotten",
        async || {
            let rounds = (0..64).map(|worker| {
                let client = client.clone();
                async move {
                    let names: Vec<String> = (0..4).map(|name| format!("own/{worker}/{name}")).collect();
                    for _ in 0..4 {
                        let grant = client.acquire(&names, SOON).await.expect("granted");
                        grant.release().await.expect("released");
                    }
                }
            });
            futures::future::join_all(rounds).await;
            let mut feed = admin.events(EventsFrom::Index(0)).await.expect("a stream");
            let first = next(&mut feed).await;
            (first.event == "compacted").then_some((first, feed))
        },
    )
    .await;
    let locks = feed.0.data["locks"].as_array().expect("the state");
    assert!(locks.iter().any(|lock| lock["name"] == "kept"));
    session.release(1).await.expect(204);
    loop {
        let event = next(&mut feed.1).await;
        if event.event == "released" && event.data["names"][0] == "kept" {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_hangs_up_while_nothing_happens_leaves_no_task_behind() {
    const READERS: usize = 50;
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut feeds = Vec::new();
    for _ in 0..READERS {
        feeds.push(admin.events(EventsFrom::Now).await.expect("a stream"));
    }
    assert!(tasks() >= before + READERS);
    drop(feeds);
    eventually(SOON, "the readers' tasks to end", async || {
        (tasks() < before + READERS / 2).then_some(())
    })
    .await;
}
