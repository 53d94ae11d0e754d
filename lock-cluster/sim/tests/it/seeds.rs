//! Three hundred seeds, in pieces that run side by side. Thousands: `lock-sim run --seeds 1..5000`.

use std::ops::RangeInclusive;

use lock_sim::{Plan, run};

fn nothing_is_found(seeds: RangeInclusive<u64>, nodes: u64) {
    let (mut grants, mut explained, mut passed_over) = (0, 0, 0);
    let runs = seeds.clone().count() as u64;
    for seed in seeds {
        let plan = Plan {
            nodes,
            ..Plan::new(seed)
        };
        let report = run(&plan);
        grants += report.counts.grants;
        explained += report.counts.searched;
        passed_over += report.counts.passed_over;
        assert!(
            report.violations.is_empty(),
            "seed {seed}: {:#?}\nagain: {}",
            report.violations,
            plan.replay_command()
        );
    }
    // A run in which nobody got anything has proved nothing.
    assert!(grants > 20 * runs, "only {grants} grants in {runs} runs");
    assert!(
        explained > passed_over,
        "{passed_over} pieces of history were passed over, {explained} explained"
    );
}

#[test]
fn three_nodes_seeds_1_to_60() {
    nothing_is_found(1..=60, 3);
}

#[test]
fn three_nodes_seeds_61_to_120() {
    nothing_is_found(61..=120, 3);
}

#[test]
fn three_nodes_seeds_121_to_180() {
    nothing_is_found(121..=180, 3);
}

#[test]
fn three_nodes_seeds_181_to_240() {
    nothing_is_found(181..=240, 3);
}

#[test]
fn five_nodes_seeds_241_to_270() {
    nothing_is_found(241..=270, 5);
}

#[test]
fn five_nodes_seeds_271_to_300() {
    nothing_is_found(271..=300, 5);
}

/// With one node there is no majority to lean on: its disk is all there is.
#[test]
fn a_lone_node_seeds_301_to_320() {
    nothing_is_found(301..=320, 1);
}
