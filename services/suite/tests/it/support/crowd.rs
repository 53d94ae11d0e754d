//! People who buy at the same time, each a task of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use buyers::{Order, Record, Shop};
use ticketing_types::billing::Card;
use ticketing_types::{Buyer, Cart, EventId, Line, Quantity, Strategy};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;

/// How long a buyer waits for one answer: longer than the suite's own budgets, so that it gets to say what
/// happened.
const PATIENCE: Duration = Duration::from_secs(75);
/// How long a buyer goes on asking in all.
const ASKING: Duration = Duration::from_secs(90);
/// The longest pause between two questions, whatever `Retry-After` says.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Waiting for one more sale fails after this.
const SALE_WITHIN: Duration = Duration::from_secs(60);

/// How the buyers behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// One request each.
    Once,
    /// Everybody asks again, under the same key, until the answer is final.
    UntilKnown,
}

/// Buyers at work.
pub(crate) struct Crowd {
    buyers: JoinSet<Vec<Record>>,
    sold: watch::Receiver<u64>,
}

impl Crowd {
    /// Lets everybody buy at once.
    pub(crate) fn release(shop: &Shop, orders: Vec<Order>, manner: Manner) -> Self {
        let door = Arc::new(Barrier::new(orders.len()));
        let (count, sold) = watch::channel(0);
        let mut buyers = JoinSet::new();
        for order in orders {
            let (shop, door, count) = (shop.clone(), Arc::clone(&door), count.clone());
            buyers.spawn(async move {
                door.wait().await;
                buy(&shop, &order, manner, &count).await
            });
        }
        Self { buyers, sold }
    }

    /// Waits until this many of them were told that they have a ticket.
    pub(crate) async fn has_sold(&mut self, tickets: u64) {
        let enough = tokio::time::timeout(SALE_WITHIN, self.sold.wait_for(|&sold| sold >= tickets)).await;
        assert!(
            matches!(enough, Ok(Ok(_))),
            "waited {SALE_WITHIN:?} in vain for {tickets} sales"
        );
    }

    /// Waits for everybody; what each request got.
    pub(crate) async fn records(self) -> Vec<Record> {
        self.buyers.join_all().await.into_iter().flatten().collect()
    }
}

async fn buy(shop: &Shop, order: &Order, manner: Manner, sold: &watch::Sender<u64>) -> Vec<Record> {
    let started = Instant::now();
    let mut records = Vec::new();
    for attempt in 0.. {
        let sent = Instant::now();
        let answer = shop.buy(order, PATIENCE).await;
        if answer.is_completed() {
            sold.send_modify(|sold| *sold += 1);
        }
        let known = answer.is_final();
        let pause = answer
            .retry_after_s
            .map_or(Duration::from_millis(100), Duration::from_secs);
        records.push(Record::new(
            order,
            attempt,
            sent - started,
            sent.elapsed(),
            answer,
        ));
        if known || manner == Manner::Once || started.elapsed() > ASKING {
            break;
        }
        tokio::time::sleep(pause.min(PAUSE_MAX)).await;
    }
    records
}

/// What buyer number `index` of a group wants: these tickets, paid with a card that works.
pub(crate) fn order(strategy: Strategy, group: &'static str, index: u32, items: &[(&EventId, u64)]) -> Order {
    let line = |&(event_id, quantity): &(&EventId, u64)| Line {
        event_id: event_id.clone(),
        quantity: Quantity::try_from(quantity).unwrap(),
    };
    Order {
        group,
        index,
        idempotency_key: format!("{group}-{index}"),
        buyer: Buyer::parse(format!("{group}-{index}")).unwrap(),
        items: Cart::try_from(items.iter().map(line).collect::<Vec<_>>()).unwrap(),
        card: Card::CardOk,
        strategy,
        payment_key: None,
        fault: None,
    }
}

/// Answers by outcome, for assertions and their messages.
pub(crate) fn outcomes(records: &[Record]) -> BTreeMap<String, usize> {
    let mut outcomes = BTreeMap::new();
    for record in records {
        *outcomes.entry(record.answer.label()).or_insert(0) += 1;
    }
    outcomes
}

/// Nobody was left without an answer, and nobody got one that contention must not give (I9).
#[track_caller]
pub(crate) fn assert_allowed(records: &[Record]) {
    let wrong: Vec<_> = records
        .iter()
        .filter(|record| !record.answer.is_allowed())
        .collect();
    assert!(wrong.is_empty(), "{:?}\n{wrong:#?}", outcomes(records));
}
