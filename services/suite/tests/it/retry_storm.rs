//! The retry storm: people who click three times, and people whose card loses the processor's reply and who ask
//! again. The judge of what was charged is the gateway's ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use buyers::{Answer, Plan, Progress, Record, RunId, StormPlan, storm};
use ticketing_types::Strategy;

use crate::support::AllInOne;
use crate::support::crowd::outcomes;
use crate::support::door::assert_kept;

const REST_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_raft_a_repeat_is_the_stored_answer_and_never_a_second_charge() {
    let suite = AllInOne::on_sqlite().await;
    charges_once(
        &suite,
        StormPlan {
            triples: 20,
            lost_replies: 20,
        },
    )
    .await;
    suite.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_lock_somebody_is_charged_twice() {
    let suite = AllInOne::on_sqlite().await;
    charges_twice(
        &suite,
        StormPlan {
            triples: 20,
            lost_replies: 20,
        },
    )
    .await;
    suite.stop().await;
}

/// A storm under `raft`: one purchase and one charge per key, whatever was repeated.
pub(crate) async fn charges_once(suite: &AllInOne, size: StormPlan) {
    let plan = plan(Strategy::Raft, size);
    let records = run(suite, &plan).await;
    let event = plan.storm_event_id();
    assert_kept(&suite.door.at_rest(&event, REST_WITHIN).await);

    let charges = suite.door.charges_by_key(&event).await;
    assert_eq!(charges.len() as u32, size.triples + size.lost_replies);
    assert!(charges.values().all(|&captures| captures == 1), "{charges:?}");
    assert_eq!(
        suite.door.checkout_book(&event).await.purchases.len(),
        charges.len()
    );

    let mut by_key: BTreeMap<&str, Vec<&Answer>> = BTreeMap::new();
    for record in &records {
        by_key
            .entry(&record.idempotency_key)
            .or_default()
            .push(&record.answer);
    }
    for (key, answers) in by_key {
        let sold: Vec<_> = answers.iter().filter(|answer| answer.is_completed()).collect();
        assert!(
            !sold.is_empty(),
            "{key} never learned of its ticket: {answers:#?}"
        );
        // Who hung up may have missed the first answer; there is no second one.
        assert!(
            sold.iter().filter(|answer| !answer.replayed).count() <= 1,
            "{key}: {answers:#?}"
        );
        assert!(
            sold.iter().all(|answer| answer.tickets == sold[0].tickets),
            "{key}: {answers:#?}"
        );
        let waits = |answer: &&&Answer| answer.label() == "409 purchase-in-progress" || answer.is_silent();
        let others = answers.iter().filter(|answer| !answer.is_completed());
        assert_eq!(
            others.filter(|answer| !waits(answer)).count(),
            0,
            "{key}: {answers:#?}"
        );
    }
    assert_eq!(storm::wrong_duplicates(&records), 0);
}

/// A storm under `none`, which takes a new payment key per attempt: the bug of real life.
pub(crate) async fn charges_twice(suite: &AllInOne, size: StormPlan) {
    let plan = plan(Strategy::None, size);
    let records = run(suite, &plan).await;
    let event = plan.storm_event_id();
    let audit = suite.door.at_rest(&event, REST_WITHIN).await;
    let charges = suite.door.charges_by_key(&event).await;
    let too_many: i64 = charges.values().map(|captures| (captures - 1).max(0)).sum();
    eprintln!(
        "none: {too_many} charges too many for {} keys; {:?}",
        charges.len(),
        outcomes(&records)
    );
    assert!(too_many >= 1, "nobody was charged twice: {charges:?}");
    assert_eq!(audit.double_charged, too_many, "the audit reads the same ledger");
}

fn plan(strategy: Strategy, size: StormPlan) -> Plan {
    Plan {
        storm: Some(size),
        ..Plan::new(RunId::named(strategy.name()), strategy)
    }
}

async fn run(suite: &AllInOne, plan: &Plan) -> Vec<Record> {
    suite
        .door
        .shop
        .prepare(plan)
        .await
        .expect("the events are created");
    let records = storm::release(&suite.door.shop, plan, &Progress::default()).await;
    eprintln!("{}: {:?}", plan.strategy, outcomes(&records));
    records
}
