//! `kill -9` of everything in the middle of a burst. What is left is what the disks say: purchases at every step
//! of the saga, holds nobody confirms, payments authorized and not captured, locks of sessions that are gone.
//! The suite must put that in order by itself.

use std::time::{Duration, Instant};

use buyers::{Order, Record};
use ticketing_types::Strategy;
use ticketing_types::billing::Card;

use crate::support::crowd::{assert_allowed, outcomes};
use crate::support::door::assert_kept;
use crate::support::{Crowd, Door, Manner, free_ports, order, program};

const CAPACITY: u32 = 60;
const BUYERS: u32 = 200;
/// Sales that were seen when everything dies: in the middle.
const SALES: u64 = 15;
/// How long the suite may take to be in order again, its start included.
const IN_ORDER_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_kill_9_of_everything_the_books_are_in_order_by_themselves() {
    service_kit::limits::raise_nofile();
    let (dir, ports) = (tempfile::tempdir().unwrap(), free_ports());
    let door = Door::at(&ports);
    let mut program = program::start(dir.path(), &ports).await;
    let event = door.event("crash", CAPACITY).await;
    let orders: Vec<Order> = (0..BUYERS)
        .map(|index| Order {
            card: card(index),
            ..order(Strategy::Raft, "crash", index, &[(&event, 1)])
        })
        .collect();

    let mut crowd = Crowd::release(&door.shop, orders.clone(), Manner::Once);
    crowd.has_sold(SALES).await;
    program.kill().await;
    let seen = crowd.records().await;
    eprintln!("killed: {:?}", outcomes(&seen));
    assert!(
        seen.iter().any(|record| record.answer.is_silent()),
        "it was killed in the middle"
    );

    let restarted = Instant::now();
    let mut program = program::start(dir.path(), &ports).await;
    eprintln!("ready again after {:?}", restarted.elapsed());
    // From here on nobody but the auditor asks anything.
    let audit = door
        .at_rest(&event, IN_ORDER_WITHIN.saturating_sub(restarted.elapsed()))
        .await;
    eprintln!("in order after {:?}: {:?}", restarted.elapsed(), audit.purchases);
    assert_kept(&audit);
    assert_every_sale_stands(&door, &seen).await;

    // Whoever heard nothing asks again under the same key, and is sold no second ticket.
    let unheard = seen.iter().filter(|record| record.answer.is_silent());
    let again = unheard
        .map(|record| orders[record.index as usize].clone())
        .collect();
    let told = Crowd::release(&door.shop, again, Manner::UntilKnown)
        .records()
        .await;
    assert_allowed(&told);
    // Seats that came back from declined cards are left for those who come later; none is lost.
    let late = (0..CAPACITY).map(|index| order(Strategy::Raft, "late", index, &[(&event, 1)]));
    let late = Crowd::release(&door.shop, late.collect(), Manner::UntilKnown);
    assert_allowed(&late.records().await);
    let audit = door.at_rest(&event, Duration::from_secs(30)).await;
    assert_kept(&audit);
    assert_eq!(audit.sold, i64::from(CAPACITY));
    let charges = door.charges_by_key(&event).await;
    assert!(charges.values().all(|&captures| captures <= 1), "{charges:?}");
    assert_every_sale_stands(&door, &[seen, told].concat()).await;

    assert!(program.terminate(Duration::from_secs(5)).await.success());
}

/// All kinds of cards, so that the crash finds payments in all kinds of states.
fn card(index: u32) -> Card {
    match index % 8 {
        1 => Card::CardSlow,
        3 => Card::CardLostReply,
        5 => Card::CardFlaky,
        7 => Card::CardDeclined,
        _ => Card::CardOk,
    }
}

async fn assert_every_sale_stands(door: &Door, records: &[Record]) {
    let kept = door.shop.check_kept(records).await;
    assert!(kept.seen >= SALES, "{kept:?}");
    assert!(kept.lost.is_empty() && kept.unreadable == 0, "{kept:?}");
}
