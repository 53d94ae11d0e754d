//! The suite as separate programs, no lock node among them, and one after the other killed in the middle of a
//! burst: whoever hosts the leader of the lock cluster, an inventory, a billing, a checkout.
//!
//! Buyers behave as people do: whoever is told to come back comes back, under the same key. What they may be told
//! is a sale, a refusal, or "come back"; nobody is left without an answer, because the front door lives.

use std::time::{Duration, Instant};

use ticketing_types::Strategy;

use crate::support::crowd::{assert_allowed, outcomes};
use crate::support::door::assert_kept;
use crate::support::programs::{Name, Programs, Wiring};
use crate::support::{Crowd, Manner, order};

const CAPACITY: u32 = 25;
const BUYERS: u32 = 60;
/// Sales that were seen when the victim dies: in the middle.
const SALES: u64 = 5;
/// How long the victim is away: part of the scenario, not a wait for something to be true.
const AWAY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_during_a_burst_nobody_is_sold_or_charged_wrongly() {
    service_kit::limits::raise_nofile();
    let mut programs = Programs::start(Wiring::Any).await;
    let leader = programs.host_of_lock_leader().await;
    // Those that host a member of the lock cluster: the harder ones.
    for (burst, victim) in [leader, ("inventory", 1), ("billing", 1), ("checkout", 1)]
        .into_iter()
        .enumerate()
    {
        survives(&mut programs, &format!("burst-{burst}"), victim).await;
    }
}

async fn survives(programs: &mut Programs, event: &str, victim: Name) {
    let started = Instant::now();
    let door = programs.door.clone();
    let event = door.event(event, CAPACITY).await;
    let orders = (0..BUYERS).map(|index| order(Strategy::Raft, "burst", index, &[(&event, 1)]));
    let orders = orders.map(|order| buyers::Order {
        idempotency_key: format!("{event}-{}", order.index),
        ..order
    });

    let mut crowd = Crowd::release(&door.shop, orders.collect(), Manner::UntilKnown);
    crowd.has_sold(SALES).await;
    programs.kill(victim).await;
    let killed = Instant::now();
    tokio::time::sleep_until((killed + AWAY).into()).await;
    programs.restart(victim).await;
    let records = crowd.records().await;
    eprintln!(
        "{victim:?} killed after {:?}: {:?}",
        killed - started,
        outcomes(&records)
    );

    assert_allowed(&records);
    let audit = door.at_rest(&event, Duration::from_secs(30)).await;
    eprintln!("in order after {:?}", started.elapsed());
    assert_kept(&audit);
    assert_eq!(audit.sold, i64::from(CAPACITY), "everybody asked until they knew");
    let kept = door.shop.check_kept(&records).await;
    assert!(kept.lost.is_empty() && kept.unreadable == 0, "{kept:?}");
    let charges = door.charges_by_key(&event).await;
    assert_eq!(charges.values().sum::<i64>(), i64::from(CAPACITY), "{charges:?}");
    assert!(charges.values().all(|&captures| captures <= 1), "{charges:?}");
}
