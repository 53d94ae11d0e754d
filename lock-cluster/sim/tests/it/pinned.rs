//! Seeds that found something once. What a seed does changes with the program, so each of these is also told as a
//! story or a rule where it was mended; here they stay because what bit once may bite again.

use lock_sim::{Plan, run};

#[track_caller]
fn finds_nothing(seed: u64, nodes: u64) {
    let plan = Plan {
        nodes,
        ..Plan::new(seed)
    };
    let report = run(&plan);
    assert!(
        report.violations.is_empty(),
        "{:#?}\nagain: {}",
        report.violations,
        plan.replay_command()
    );
}

/// An acquire that was asked again was given up by the node whose connection was hung up on, although the client had
/// been told over another one that it holds. Now an attempt goes with the last of its deliveries only
/// (`a_delivery_that_comes_late_takes_nothing_along` in lock-core's scripts).
#[test]
fn hanging_up_on_a_repeat_takes_nothing_from_the_holder() {
    for seed in [1, 7, 12] {
        finds_nothing(seed, 3);
    }
}

/// Two membership changes at a time, one of which removed the leader that was asked for the other, ended the
/// consensus library with a panic. Now they take turns, and a leader on its way out says that nobody leads.
#[test]
fn membership_changes_take_turns() {
    for seed in [82, 113, 128] {
        finds_nothing(seed, 5);
    }
}

/// A change that its leader's crash left half-way made a learner of the leader that came next, and it would not take
/// part in the change back. A learner that leads serves changes like any other leader.
#[test]
fn a_learner_that_leads_can_be_made_a_voter() {
    finds_nothing(5046, 5);
}
