//! The same burst under every strategy: who promises to sell each seat once does, and who promises nothing
//! oversells, with nothing added to make it.

use std::time::Duration;

use buyers::{Plan, Progress, RoundReport, RunId, StrategyVerdict, round};
use ticketing_types::Strategy;

use crate::support::AllInOne;

const CAPACITY: u32 = 20;
const BUYERS: u32 = 150;
/// How often the race gets a chance.
const ROUNDS: u64 = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raft_atomic_and_optimistic_sell_every_seat_once() {
    let suite = AllInOne::on_sqlite().await;
    for strategy in [Strategy::Raft, Strategy::Atomic, Strategy::Optimistic] {
        sells_every_seat_once(&suite, strategy, CAPACITY, BUYERS).await;
    }
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_lock_the_same_burst_oversells() {
    let suite = AllInOne::on_sqlite().await;
    oversells(&suite, Strategy::None, CAPACITY, BUYERS).await;
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_in_each_process_does_not_help_two_processes() {
    let suite = AllInOne::on_sqlite().await;
    oversells(&suite, Strategy::Process, CAPACITY, BUYERS).await;
    suite.stop().await;
}

/// A round in which nothing breaks.
pub(crate) async fn sells_every_seat_once(suite: &AllInOne, strategy: Strategy, capacity: u32, buyers: u32) {
    let report = run(suite, strategy, capacity, buyers, 1).await;
    assert_eq!(
        report.verdict,
        StrategyVerdict::Pass,
        "{strategy}: {}\n{report:#?}",
        report.reason
    );
    assert_eq!(report.sold, i64::from(capacity), "{strategy}");
    let broken = [
        report.oversold,
        report.undersold,
        report.double_charged,
        report.charged_without_ticket,
        report.ticket_without_charge,
        report.lost_201,
    ];
    assert_eq!(broken, [0; 6], "{strategy}: {report:#?}");
    // I9 has seen to it that a 503 came with Retry-After.
    let expected = |label: &str| matches!(label, "201" | "409 sold-out") || label.starts_with("503 ");
    assert!(
        report.outcomes.keys().all(|label| expected(label)),
        "{strategy}: {:?}",
        report.outcomes
    );
}

/// The race, reproduced in one of several rounds.
pub(crate) async fn oversells(suite: &AllInOne, strategy: Strategy, capacity: u32, buyers: u32) {
    for seed in 1..=ROUNDS {
        let report = run(suite, strategy, capacity, buyers, seed).await;
        eprintln!("{strategy}, round {seed}: {}", report.reason);
        assert_eq!(report.fault, None, "nothing was added to make it fail");
        if report.oversold > 0 {
            assert_eq!(
                report.verdict,
                StrategyVerdict::RaceReproduced,
                "{}",
                report.reason
            );
            return;
        }
    }
    panic!("{strategy} oversold in none of {ROUNDS} rounds");
}

async fn run(suite: &AllInOne, strategy: Strategy, capacity: u32, buyers: u32, seed: u64) -> RoundReport {
    let plan = Plan {
        seed,
        capacity,
        buyers,
        storm: None,
        rest_timeout: Duration::from_secs(60),
        ..Plan::new(RunId::named(strategy.name()), strategy)
    };
    round::run(&suite.door.shop, &plan, &Progress::default())
        .await
        .expect("a round")
}
