//! A check that never found anything has proved nothing: each planted bug is found, and within few seeds.

use lock_sim::{Plan, Plant, run};

/// The first seed of `1..=most` in which `check` sees the bug.
fn found(plant: Plant, check: &str, most: u64) -> u64 {
    let sees = |seed: &u64| {
        let plan = Plan {
            plant: Some(plant),
            ..Plan::new(*seed)
        };
        let report = run(&plan);
        report
            .violations
            .iter()
            .any(|violation| violation.starts_with(check))
    };
    (1..=most)
        .find(sees)
        .unwrap_or_else(|| panic!("{check} does not see {plant:?} in {most} seeds"))
}

#[test]
fn a_grant_without_a_durable_majority_is_seen_by_the_replicas() {
    found(Plant::AcknowledgeBeforeFlush, "agreement", 200);
}

#[test]
fn a_grant_without_a_durable_majority_is_seen_by_the_clients() {
    found(Plant::AcknowledgeBeforeFlush, "history", 200);
}

#[test]
fn a_grant_without_a_durable_majority_cannot_be_explained_by_one_lock() {
    found(Plant::AcknowledgeBeforeFlush, "linear", 200);
}

#[test]
fn a_snapshot_without_the_remembered_answers_is_seen_by_the_replicas() {
    found(Plant::ForgetAnswersInSnapshots, "agreement", 60);
}

#[test]
fn a_snapshot_without_the_remembered_answers_is_seen_by_the_clients() {
    found(Plant::ForgetAnswersInSnapshots, "history", 60);
}

#[test]
fn an_expiry_that_does_not_look_at_keep_alives_is_seen_by_the_clients() {
    found(Plant::ExpireRegardless, "history", 10);
}

#[test]
fn the_command_that_repeats_a_run_names_the_planted_bug() {
    let mut plan = Plan::new(7);
    assert!(!plan.replay_command().contains("plant"));
    plan.plant = Some(Plant::ExpireRegardless);
    let command = plan.replay_command();
    assert!(command.ends_with(" --plant expire-regardless"), "{command}");
}
