//! A limit per buyer is checked inside the same critical section as the stock: thirty purchases at once, over
//! all instances, do not slip past it.

use std::time::Duration;

use serde_json::json;
use ticketing_types::{Buyer, Strategy};

use crate::support::crowd::outcomes;
use crate::support::door::assert_kept;
use crate::support::{AllInOne, Crowd, Manner, order};

const PURCHASES: u32 = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_purchases_at_once_do_not_pass_a_limit_of_two() {
    let suite = AllInOne::on_sqlite().await;
    for strategy in [Strategy::Raft, Strategy::Atomic, Strategy::Optimistic] {
        let id = format!("limited-{strategy}");
        let event = suite
            .door
            .event_with(&id, json!({ "capacity": 100, "max_per_buyer": 2 }))
            .await;
        let orders = (0..PURCHASES).map(|index| buyers::Order {
            idempotency_key: format!("{id}-{index}"),
            buyer: Buyer::parse("greedy").unwrap(),
            ..order(strategy, "limit", index, &[(&event, 1)])
        });
        let records = Crowd::release(&suite.door.shop, orders.collect(), Manner::Once)
            .records()
            .await;
        let outcomes = outcomes(&records);
        // Nobody gives a seat back here, so the two that fit are sold.
        assert_eq!(outcomes.get("201"), Some(&2), "{strategy}: {outcomes:?}");
        assert_eq!(
            outcomes.get("422 limit-reached"),
            Some(&28),
            "{strategy}: {outcomes:?}"
        );
        let audit = suite.door.at_rest(&event, Duration::from_secs(10)).await;
        assert_kept(&audit);
        assert_eq!((audit.sold, audit.charged), (2, 2), "{strategy}");
    }
    suite.stop().await;
}
