//! Carts that name the same two events in opposite orders. With a lock per event taken one by one this would
//! be the textbook's deadlock; here all names of a cart are granted together.

use std::time::Duration;

use ticketing_types::Strategy;

use crate::support::crowd::outcomes;
use crate::support::door::assert_kept;
use crate::support::{AllInOne, Crowd, Manner, order};

const CARTS: u32 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opposite_carts_are_all_sold_without_a_deadlock() {
    let suite = AllInOne::on_sqlite().await;
    let a = suite.door.event("a", 1000).await;
    let b = suite.door.event("b", 1000).await;
    let orders = (0..CARTS).map(|index| match index % 2 {
        0 => order(Strategy::Raft, "cart", index, &[(&a, 1), (&b, 1)]),
        _ => order(Strategy::Raft, "cart", index, &[(&b, 1), (&a, 1)]),
    });
    let records = Crowd::release(&suite.door.shop, orders.collect(), Manner::Once)
        .records()
        .await;
    let sold = records
        .iter()
        .filter(|record| record.answer.is_completed())
        .count();
    assert_eq!(sold as u32, CARTS, "{:?}", outcomes(&records));
    assert!(records.iter().all(|record| record.answer.tickets.len() == 2));
    for event in [&a, &b] {
        let audit = suite.door.at_rest(event, Duration::from_secs(10)).await;
        assert_kept(&audit);
        assert_eq!(audit.sold, i64::from(CARTS));
    }
    suite.stop().await;
}
