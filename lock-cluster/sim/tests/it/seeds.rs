//! Three hundred seeds, in pieces that run side by side. Thousands: `lock-sim run --seeds 1..5000`.

use std::ops::RangeInclusive;

use lock_sim::{Plan, run};

fn nothing_is_found(seeds: RangeInclusive<u64>, nodes: u64) {
    let mut grants = 0;
    let runs = seeds.clone().count() as u64;
    for seed in seeds {
        let plan = Plan {
            nodes,
            ..Plan::new(seed)
        };
        let report = run(&plan);
        grants += report.counts.grants;
        assert!(
            report.violations.is_empty(),
            "seed {seed}: {:#?}\nagain: {}",
            report.violations,
            plan.replay_command()
        );
    }
    // A run in which nobody got anything has proved nothing.
    assert!(grants > 20 * runs, "only {grants} grants in {runs} runs");
}

#[test]
fn three_nodes_seeds_1_to_50() {
    nothing_is_found(1..=50, 3);
}

#[test]
fn three_nodes_seeds_51_to_100() {
    nothing_is_found(51..=100, 3);
}

#[test]
fn three_nodes_seeds_101_to_150() {
    nothing_is_found(101..=150, 3);
}

#[test]
fn three_nodes_seeds_151_to_200() {
    nothing_is_found(151..=200, 3);
}

#[test]
fn five_nodes_seeds_201_to_235() {
    nothing_is_found(201..=235, 5);
}

#[test]
fn five_nodes_seeds_236_to_270() {
    nothing_is_found(236..=270, 5);
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
