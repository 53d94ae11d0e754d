//! The lab that a fencing token exists for. An inventory holds the lock, has read that one seat is free, and is
//! stopped (SIGSTOP: a long garbage collection, a frozen machine) for longer than its session lives. The
//! cluster gives the lock to somebody else, who sells the seat. Then the first one goes on, exactly where it was:
//! about to write.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use testkit::eventually;
use ticketing_types::audit::AuditReport;
use ticketing_types::{EventId, Strategy};

use crate::support::door::{assert_kept, send};
use crate::support::programs::{Name, Programs, Wiring};
use crate::support::{Door, Reply};

/// The one that is stopped; it hosts no member of the lock cluster. In this wiring the second checkout asks it.
const PAUSED: Name = ("inventory", 2);
const POINT: &str = "inventory.critical-section";
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_holder_is_refused_by_its_stale_token() {
    let programs = Programs::start(Wiring::Own).await;
    let door = programs.door.clone();

    // Asked directly, inventory says what happened.
    let event = door.event("paused-hold", 1).await;
    let hold = json!({ "buyer": "early", "items": [{ "event_id": event, "quantity": 1 }] });
    let hold = door
        .request_on(door.ports().inventory[1], Method::PUT, "/v1/holds/early")
        .json(&hold);
    let (early, late) = across_a_pause(&programs, &event, Strategy::Raft, hold).await;
    early.problem(409, "stale-fencing-token");
    late.is(201);
    assert_sold_once(&at_rest(&door, &event).await);

    // Through a checkout, the buyer learns that the seat is gone.
    let event = door.event("paused-purchase", 1).await;
    let purchase = purchase(&door, &event, 1, "early");
    let (early, late) = across_a_pause(&programs, &event, Strategy::Raft, purchase).await;
    early.problem(409, "sold-out");
    late.is(201);
    assert_sold_once(&at_rest(&door, &event).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_fencing_a_paused_holder_sells_the_seat_again() {
    let programs = Programs::start(Wiring::Own).await;
    let door = programs.door.clone();
    for attempt in 1..=TRIES {
        let event = door.event(&format!("unfenced-{attempt}"), 1).await;
        let purchase = purchase(&door, &event, 1, "early");
        let (early, late) = across_a_pause(&programs, &event, Strategy::RaftUnfenced, purchase).await;
        late.is(201);
        let audit = at_rest(&door, &event).await;
        eprintln!(
            "try {attempt}: {} {}, sold {} of 1",
            early.status,
            early.slug(),
            audit.sold
        );
        if audit.oversold >= 1 {
            early.is(201);
            return;
        }
    }
    panic!("nothing was oversold in {TRIES} tries");
}

/// Sends the request, which reaches the inventory that will be stopped; stops it inside its section; lets
/// somebody else buy at the other one; lets it go on. What the first and the second buyer were told.
async fn across_a_pause(
    programs: &Programs,
    event: &EventId,
    strategy: Strategy,
    early: reqwest::RequestBuilder,
) -> (Reply, Reply) {
    let door = &programs.door;
    let paused = programs.get(PAUSED);
    // Keeps it in there long enough to be stopped; that it is then late is up to the stop.
    let rule = json!({ "effect": "delay=2s", "scope": event });
    send(
        door.request_on(
            door.ports().inventory[1],
            Method::PUT,
            &format!("/v1/faults/{POINT}"),
        )
        .json(&rule),
    )
    .await
    .is(200);
    let early = tokio::spawn(send(early.header("lock-strategy", strategy.name())));
    eventually(
        Duration::from_secs(20),
        "the first buyer to be inside the section",
        async || {
            let faults = send(door.request_on(door.ports().inventory[1], Method::GET, "/v1/faults")).await;
            let points = faults.body["points"].as_array()?.clone();
            let point = points.iter().find(|point| point["point"] == POINT)?;
            (point["fired"].as_u64()? > 0).then_some(())
        },
    )
    .await;
    paused.stop().await;
    let lock = door.get(&format!("/v1/locks/event/{event}")).await.is(200);
    assert_eq!(lock.body["holder"]["label"], "inventory-2", "{}", lock.body);

    // Waits in line until the session of the stopped one is over, and is granted the lock then.
    let late = purchase(door, event, 0, "late").header("lock-strategy", strategy.name());
    let late = send(late).await;
    paused.resume().await;
    (early.await.expect("the first buyer's request"), late)
}

/// A purchase at one checkout, and so at the inventory of the same number.
fn purchase(door: &Door, event: &EventId, checkout: usize, buyer: &str) -> reqwest::RequestBuilder {
    let body = json!({
        "buyer": buyer, "items": [{ "event_id": event, "quantity": 1 }], "card": "card_ok"
    });
    let request = door.request_on(door.ports().checkout[checkout], Method::POST, "/v1/purchases");
    request
        .header("idempotency-key", format!("{buyer}-{event}"))
        .json(&body)
}

async fn at_rest(door: &Door, event: &EventId) -> AuditReport {
    door.at_rest(event, Duration::from_secs(30)).await
}

#[track_caller]
fn assert_sold_once(audit: &AuditReport) {
    assert_kept(audit);
    assert_eq!(
        (audit.capacity, audit.sold, audit.oversold, audit.charged),
        (1, 1, 0, 1),
        "{audit:?}"
    );
    assert!(audit.stale_tokens_rejected >= 1, "{audit:?}");
}
