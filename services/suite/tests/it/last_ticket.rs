//! One seat, fifty buyers over all instances: exactly one of them gets it and pays for it, every time.

use futures::StreamExt as _;
use ticketing_types::Strategy;

use crate::support::crowd::{assert_allowed, outcomes};
use crate::support::{AllInOne, Crowd, Manner, order};

const BUYERS: u32 = 50;
const REPETITIONS: u32 = 200;
/// Repetitions that run at the same time: different events wait for different locks.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_ticket_is_sold_once_200_times_out_of_200() {
    let suite = AllInOne::on_sqlite().await;
    sells_the_last_ticket_once(&suite, BUYERS, REPETITIONS).await;
    suite.stop().await;
}

/// Many last tickets, each fought over by all buyers.
pub(crate) async fn sells_the_last_ticket_once(suite: &AllInOne, buyers: u32, repetitions: u32) {
    let repetitions = futures::stream::iter(0..repetitions);
    repetitions
        .for_each_concurrent(AT_ONCE, |repetition| one(suite, buyers, repetition))
        .await;
}

async fn one(suite: &AllInOne, buyers: u32, repetition: u32) {
    let event = suite.door.event(&format!("last-{repetition}"), 1).await;
    let orders = (0..buyers).map(|index| order(Strategy::Raft, "last", index, &[(&event, 1)]));
    // A key of its own per repetition: the same buyers come again.
    let orders = orders.map(|order| buyers::Order {
        idempotency_key: format!("{}-{repetition}", order.idempotency_key),
        ..order
    });
    let records = Crowd::release(&suite.door.shop, orders.collect(), Manner::Once)
        .records()
        .await;
    assert_allowed(&records);
    let sold = records
        .iter()
        .filter(|record| record.answer.is_completed())
        .count();
    assert_eq!(sold, 1, "repetition {repetition}: {:?}", outcomes(&records));

    let charges = suite.door.charges_by_key(&event).await;
    assert_eq!(
        charges.values().sum::<i64>(),
        1,
        "repetition {repetition}: {charges:?}"
    );
    let stock = suite.door.shop.event(&event).await.unwrap();
    assert_eq!(
        (stock.available, stock.held, stock.sold),
        (0, 0, 1),
        "repetition {repetition}"
    );
}
