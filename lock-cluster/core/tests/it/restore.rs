//! A cluster is lost, and another takes its place from a backup: the tokens of the two must not mix.
//!
//! The lost cluster may have granted more after the backup was taken, which is what the margin is for.

use lock_core::*;
use proptest::prelude::*;

use crate::histories::{Step, Timed, history};

/// Plays the commands of a history, and returns the tokens granted.
fn play(state: &mut LockState, clock: &mut u64, steps: &[Timed]) -> Vec<u64> {
    let mut tokens = Vec::new();
    for (moved, step) in steps {
        *clock = clock.saturating_add_signed(*moved);
        let Step::Do(command) = step else { continue };
        // A floor is what this test raises by itself.
        if matches!(command, Command::RaiseTokenFloor { .. }) {
            continue;
        }
        for event in state.apply(ClusterTime::from_ms(*clock), command.clone()).events {
            if let Event::Granted { fencing_token, .. } = event {
                tokens.push(fencing_token.get());
            }
        }
    }
    tokens
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_stay_above_all_earlier_ones_also_after_a_restore(
        before in history(), after in history(), own in history(), later in history(),
    ) {
        let (mut lost, mut clock) = (LockState::new(), 10_000);
        let mut seen = play(&mut lost, &mut clock, &before);
        let backup = lost.snapshot();
        seen.extend(play(&mut lost, &mut clock, &after));

        // The new one has been in use already, which is not how it is meant, and safe all the same.
        let (mut new, mut clock) = (LockState::new(), 10_000);
        let own = play(&mut new, &mut clock, &own);
        let margin = after.len() as u64 * 2;
        let floor = FencingToken::new(LockState::restore(backup).unwrap().last_token().get() + margin);
        new.apply(ClusterTime::from_ms(clock), Command::RaiseTokenFloor { floor });
        let mut later = play(&mut new, &mut clock, &later);
        // Once more, when it has granted beyond that.
        new.apply(ClusterTime::from_ms(clock), Command::RaiseTokenFloor { floor });
        later.extend(play(&mut new, &mut clock, &after));

        prop_assert!(own.is_sorted_by(|a, b| a < b) && later.is_sorted_by(|a, b| a < b));
        let highest = seen.iter().chain(&own).max().copied().unwrap_or(0);
        if let Some(lowest) = later.iter().min() {
            prop_assert!(*lowest > highest, "{lowest} was granted after {highest}");
        }
    }
}
