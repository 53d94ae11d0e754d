//! What is told of a cluster, to people and to scripts, and what follows its events.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{SOON, Shell, lockctl, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_members_and_events_are_told_to_people_and_to_scripts() {
    let shell = Shell::start().await;
    let status = text(&shell.run(&["status"]).await.stdout);
    assert!(status.contains("ROLE") && status.contains("leader"), "{status}");
    let told = shell.json(&["status"]).await[0]["status"].clone();
    assert_eq!(told["role"], "leader");
    let cluster_id = told["cluster_id"].as_str().expect("it is of a cluster");
    assert!(status.contains(&cluster_id[..8]), "{status}");
    let members = text(&shell.run(&["members"]).await.stdout);
    assert!(
        members.contains("PEERS") && members.contains("leader"),
        "{members}"
    );
    assert_eq!(shell.json(&["members", "list"]).await[0]["id"], 1);

    let mut watch = shell
        .command(&["--json", "watch", "--from", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    assert!(shell.run(&["lock", "gate", "--", "true"]).await.status.success());
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let told = async {
        loop {
            let line = lines
                .next_line()
                .await
                .expect("it can be read")
                .expect("it goes on");
            let event: Value = serde_json::from_str(&line).expect("a line is a JSON object");
            if event["event"] == "granted" {
                return event;
            }
        }
    };
    let granted = tokio::time::timeout(SOON, told)
        .await
        .expect("it is told in time");
    assert_eq!(granted["data"]["names"], serde_json::json!(["gate"]));
    watch.kill().await.expect("it was watching");
}

/// A node that tells the first of two events of one index, and is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_behind_the_last_event_it_has_seen() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let node = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", node.local_addr().expect("it listens"));
    let mut watch = lockctl(&url, &["watch", "--from", "5"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    for (asks, id) in [("/v1/events?from=5", "5.0"), ("last-event-id: 5.0", "5.1")] {
        let served = async {
            let (mut connection, _) = node.accept().await.expect("it comes");
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(connection.read_u8().await.expect("a request"));
            }
            let asked = text(&asked).to_lowercase();
            assert!(asked.contains(asks), "{asked}");
            let told =
                format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: {id}\ndata: {{}}\n\n");
            connection.write_all(told.as_bytes()).await.expect("it listens");
            lines.next_line().await.expect("it can be read").expect("a line")
        };
        let line = tokio::time::timeout(SOON, served).await.expect("in time");
        assert!(line.trim_start().starts_with(id), "{line}");
    }
    watch.kill().await.expect("it was watching");
}
