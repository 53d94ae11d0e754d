//! Whole runs. Fifty of them: `lock-chaos run --runs 50`.

use lock_chaos::cluster::Setup;
use lock_chaos::plan::Plant;
use lock_chaos::{Plan, Report, run};

/// A run with fewer grants has shown nothing.
const GRANTS_MIN: usize = 30;

async fn carried_out(plan: &Plan) -> Report {
    let report = run(plan, Setup::default(), None).await.unwrap();
    println!(
        "seed {}: {} faults, {} grants, {:?} pieces of history explained and passed over",
        plan.seed, report.faults, report.grants, report.explained
    );
    report
}

async fn finds_nothing(plan: Plan) {
    let report = carried_out(&plan).await;
    assert!(
        report.violations.is_empty(),
        "{:#?}\nagain: {}",
        report.violations,
        plan.command()
    );
    assert!(report.grants >= GRANTS_MIN, "void: only {} grants", report.grants);
    assert!(report.explained.0 > 0, "nothing was small enough to explain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_seed_1() {
    finds_nothing(Plan::new(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_seed_2() {
    finds_nothing(Plan::new(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_nodes_seed_3() {
    finds_nothing(Plan {
        nodes: 5,
        ..Plan::new(3)
    })
    .await;
}

/// The check sees the bug, in a few seeds at most: what is in flight when it bites is left to chance.
async fn found(plant: Plant, check: &str) {
    let mut seen = Vec::new();
    for seed in 1..=4 {
        let plan = Plan {
            plant: Some(plant),
            seconds: 4,
            ..Plan::new(seed)
        };
        let report = carried_out(&plan).await;
        if report.violations.iter().any(|what| what.starts_with(check)) {
            return;
        }
        seen.push(report.violations);
    }
    panic!("{check} did not see {plant:?}: {seen:#?}");
}

/// A grant that was acknowledged and is on no disk: the same as one without a durable majority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_that_were_written_nowhere_are_found_by_the_clients() {
    found(Plant::ForgetfulDisks, "history").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_session_that_is_ended_is_found_by_its_client() {
    found(Plant::EndedSessions, "history").await;
}
