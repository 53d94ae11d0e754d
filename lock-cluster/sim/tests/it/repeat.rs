//! A seed is a run, and always the same one.

use lock_sim::{Plan, run};

#[test]
fn a_seed_repeats_bit_for_bit() {
    for seed in [1, 7, 42] {
        let plan = Plan::new(seed);
        let (first, second) = (run(&plan), run(&plan));
        assert_eq!(
            (first.hash, first.events),
            (second.hash, second.events),
            "seed {seed}"
        );
        assert_eq!(first.counts, second.counts);
    }
}

#[test]
fn reading_along_changes_nothing() {
    let plan = Plan::new(3);
    let silent = run(&plan);
    let told = run(&Plan {
        readable: true,
        ..plan
    });
    assert_eq!(silent.hash, told.hash);
    assert!(silent.lines.is_empty());
    assert_eq!(told.lines.len() as u64, told.events);
}

#[test]
fn another_seed_is_another_run() {
    assert_ne!(run(&Plan::new(1)).hash, run(&Plan::new(2)).hash);
}
