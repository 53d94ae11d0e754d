//! The same promises on PostgreSQL, where the race has other windows: no single writer puts the transactions in
//! line, and every instance has a pool of connections.

use buyers::StormPlan;
use ticketing_types::Strategy;

use crate::last_ticket::sells_the_last_ticket_once;
use crate::oversell::{oversells, sells_every_seat_once};
use crate::retry_storm::{charges_once, charges_twice};
use crate::support::AllInOne;

const CAPACITY: u32 = 10;
const BUYERS: u32 = 80;
const STORM: StormPlan = StormPlan {
    triples: 10,
    lost_replies: 10,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_too_the_guarded_sell_every_seat_once_and_the_others_oversell() {
    let Some(suite) = AllInOne::on_postgres().await else {
        return;
    };
    for strategy in [Strategy::Raft, Strategy::Atomic, Strategy::Optimistic] {
        sells_every_seat_once(&suite, strategy, CAPACITY, BUYERS).await;
    }
    for strategy in [Strategy::None, Strategy::Process] {
        oversells(&suite, strategy, CAPACITY, BUYERS).await;
    }
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_too_only_without_a_lock_somebody_is_charged_twice() {
    let Some(suite) = AllInOne::on_postgres().await else {
        return;
    };
    charges_once(&suite, STORM).await;
    charges_twice(&suite, STORM).await;
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_too_the_last_ticket_is_sold_once() {
    let Some(suite) = AllInOne::on_postgres().await else {
        return;
    };
    sells_the_last_ticket_once(&suite, 30, 30).await;
    suite.stop().await;
}
