//! Starting, starting again, stopping, and not being able to start.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use ticketing_types::EventId;

use crate::support::door::{assert_kept, send, try_send};
use crate::support::{Door, free_ports, program};

/// Ctrl-C and SIGTERM end everything within this.
const STOP_WITHIN: Duration = Duration::from_secs(5);

fn cart(event: &EventId, card: &str) -> serde_json::Value {
    json!({ "buyer": "alice", "items": [{ "event_id": event, "quantity": 2 }], "card": card })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_goes_on_with_the_same_data() {
    let (dir, ports) = (tempfile::tempdir().unwrap(), free_ports());
    let door = Door::at(&ports);

    let mut program = program::start(dir.path(), &ports).await;
    let event = door.event("kept", 10).await;
    let first = send(door.purchase("k1", &cart(&event, "card_ok"))).await.is(201);
    assert!(
        program.terminate(STOP_WITHIN).await.success(),
        "SIGTERM is a way to end well"
    );

    let mut program = program::start(dir.path(), &ports).await;
    let again = send(door.purchase("k1", &cart(&event, "card_ok"))).await.is(201);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.body, first.body);
    send(door.purchase("k2", &cart(&event, "card_ok"))).await.is(201);
    let audit = door.at_rest(&event, Duration::from_secs(20)).await;
    assert_kept(&audit); // tokens that began anew would be refused, or fall (I8)
    assert_eq!((audit.sold, audit.available, audit.charged), (4, 6, 2));
    assert!(program.interrupt(STOP_WITHIN).await.success(), "so is Ctrl-C");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_neither_for_watchers_nor_for_slow_cards_and_loses_no_purchase() {
    let (dir, ports) = (tempfile::tempdir().unwrap(), free_ports());
    let door = Door::at(&ports);
    let mut program = program::start(dir.path(), &ports).await;
    let event = door.event("interrupted", 10).await;

    // Somebody watches the page, which never ends by itself.
    let mut watcher = door.request(Method::GET, "/v1/stream").send().await.unwrap();
    assert!(watcher.status().is_success());
    watcher.chunk().await.unwrap();
    // Somebody buys, and their bank takes its time.
    let buyer = tokio::spawn(try_send(door.purchase("slow", &cart(&event, "card_slow"))));
    testkit::eventually(
        Duration::from_secs(20),
        "the purchase to be under way",
        async || (!door.checkout_book(&event).await.purchases.is_empty()).then_some(()),
    )
    .await;
    assert!(program.terminate(STOP_WITHIN).await.success());
    let told = buyer.await.unwrap().expect("who is being served is answered");
    assert!(matches!(told.status, 201 | 202), "{} {}", told.status, told.body);

    let mut program = program::start(dir.path(), &ports).await;
    let audit = door.at_rest(&event, Duration::from_secs(30)).await;
    assert_kept(&audit);
    assert_eq!(
        (audit.sold, audit.charged),
        (2, 1),
        "finished without the client's help"
    );
    assert!(program.terminate(STOP_WITHIN).await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named() {
    let (dir, ports) = (tempfile::tempdir().unwrap(), free_ports());
    for port in [
        ports.front_door,
        ports.billing[1],
        ports.lock_clients[2],
        ports.lock_peers[0],
    ] {
        let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        let run = program::command(dir.path(), &ports).kill_on_drop(true).output();
        let run = tokio::time::timeout(program::READY_WITHIN, run)
            .await
            .expect("it gives up")
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success(), "port {port}: {said}");
        assert!(said.contains(&format!("127.0.0.1:{port}")), "port {port}: {said}");
        assert!(
            !String::from_utf8_lossy(&run.stdout).contains("ready"),
            "port {port}"
        );
    }
}
