//! Which small histories one lock can explain, and which it cannot.

use lock_core::{AcquireId, LockName, LockNames, SessionId};
use lock_history::linear::{Found, KNOWN_MAX, OPEN_MAX, check};
use lock_history::{Attempt, Moment, Verdict, What};
use uuid::Uuid;

/// The attempt with this number; each belongs to a client of its own.
fn attempt(number: u64) -> Attempt {
    Attempt {
        session: SessionId::new(Uuid::from_u128(number.into())),
        id: AcquireId::new(1),
    }
}

fn asks(number: u64) -> What {
    What::Asked(attempt(number), LockNames::parse(&["gate"]).unwrap())
}

fn gets(number: u64, token: u64) -> What {
    What::Told(attempt(number), Verdict::Granted(token))
}

fn lets_go(number: u64) -> What {
    What::LetGo(attempt(number))
}

fn released(number: u64) -> What {
    What::Released(attempt(number))
}

fn dies(number: u64) -> What {
    What::Distrusted(attempt(number).session)
}

fn looks(number: u64) -> What {
    What::Looks(number, LockName::parse("gate").unwrap())
}

fn sees(number: u64, token: Option<u64>) -> What {
    What::Saw(number, token)
}

fn found(whats: impl IntoIterator<Item = What>) -> Found {
    let moments = (0..).zip(whats).map(|(at, what)| Moment { at, what });
    check(&moments.collect::<Vec<_>>())
}

#[track_caller]
fn is_explained(whats: impl IntoIterator<Item = What>) {
    let found = found(whats);
    assert_eq!(found.violations, Vec::<String>::new());
    assert_eq!(found.passed_over, 0);
    assert!(found.searched > 0);
}

#[track_caller]
fn is_not_explained(whats: impl IntoIterator<Item = What>) {
    let found = found(whats);
    assert!(!found.violations.is_empty(), "{found:?}");
}

/// A whole turn, from asking to the confirmed release.
fn turn(number: u64, token: u64) -> [What; 4] {
    [
        asks(number),
        gets(number, token),
        lets_go(number),
        released(number),
    ]
}

#[test]
fn one_after_the_other_is_explained() {
    is_explained(turn(1, 1).into_iter().chain(turn(2, 2)));
}

#[test]
fn a_grant_is_explained_before_the_release_that_made_room_was_confirmed() {
    is_explained([asks(1), gets(1, 1), asks(2), lets_go(1), gets(2, 2), released(1)]);
}

#[test]
fn two_holders_are_not_explained() {
    is_not_explained([asks(1), gets(1, 1), asks(2), gets(2, 2)]);
}

#[test]
fn a_grant_before_the_holder_let_go_is_not_explained() {
    is_not_explained([asks(1), gets(1, 1), asks(2), gets(2, 2), lets_go(1), released(1)]);
}

#[test]
fn a_token_that_turns_back_is_not_explained() {
    is_not_explained(turn(1, 5).into_iter().chain(turn(2, 4)));
    is_not_explained(turn(1, 5).into_iter().chain(turn(2, 5)));
}

#[test]
fn a_holder_that_died_makes_room_at_any_time_or_never() {
    is_explained([asks(1), gets(1, 1), dies(1), asks(2), gets(2, 2)]);
    is_explained([asks(1), gets(1, 1), dies(1), looks(1), sees(1, Some(1))]);
    is_explained([asks(1), gets(1, 1), dies(1), looks(1), sees(1, None)]);
}

#[test]
fn a_dead_holder_does_not_come_back() {
    let start = [asks(1), gets(1, 1), dies(1), looks(1), sees(1, None)];
    is_not_explained(start.into_iter().chain([looks(2), sees(2, Some(1))]));
}

#[test]
fn a_look_sees_the_holder() {
    let held = || [asks(1), gets(1, 1), looks(1)];
    is_explained(held().into_iter().chain([sees(1, Some(1))]));
    is_not_explained(held().into_iter().chain([sees(1, None)]));
    is_not_explained(held().into_iter().chain([sees(1, Some(2))]));
}

#[test]
fn a_look_after_the_release_does_not_see_the_old_holder() {
    let look = [looks(1), sees(1, Some(1))];
    is_not_explained(turn(1, 1).into_iter().chain(look));
    // Nor by taking somebody else for it, of whom nothing is known.
    let look = [asks(2), looks(1), sees(1, Some(1))];
    is_not_explained(turn(1, 1).into_iter().chain(look));
    // But one that began before it does, or may.
    let [asked, got, goes, gone] = turn(1, 1);
    is_explained([asked, got, looks(1), goes, gone, sees(1, Some(1))]);
}

#[test]
fn an_answer_that_never_came_may_have_been_yes() {
    is_explained([asks(1), looks(1), sees(1, Some(1)), looks(2), sees(2, None)]);
    // Under one token, though.
    is_not_explained([asks(1), looks(1), sees(1, Some(1)), looks(2), sees(2, Some(2))]);
}

#[test]
fn after_its_release_was_confirmed_an_attempt_cannot_hold() {
    let unknown = [asks(1), lets_go(1), released(1)];
    is_not_explained(unknown.into_iter().chain([looks(1), sees(1, Some(1))]));
    let never = [asks(1), lets_go(1), What::NotHeld(attempt(1))];
    is_not_explained(never.into_iter().chain([looks(1), sees(1, Some(1))]));
}

#[test]
fn nobody_is_refused_a_free_lock() {
    let refused = |number| [asks(number), What::Told(attempt(number), Verdict::Held)];
    is_not_explained(turn(1, 1).into_iter().chain(refused(2)));
    is_explained([asks(1), gets(1, 1)].into_iter().chain(refused(2)));
    // Whoever wants several may stand in front of this one while nobody holds it.
    let both = What::Asked(attempt(3), LockNames::parse(&["gate", "yard"]).unwrap());
    let in_vain = What::Told(attempt(3), Verdict::TimedOut);
    is_explained(
        [both]
            .into_iter()
            .chain(refused(2))
            .chain([in_vain])
            .chain(turn(1, 1)),
    );
}

#[test]
fn what_an_administrator_broke_is_free() {
    let broken = [asks(1), gets(1, 1), What::Breaks(1)];
    is_explained(
        broken
            .into_iter()
            .chain(turn(2, 2))
            .chain([lets_go(1), released(1)]),
    );
}

/// More than one window, the last of which is broken or is not.
fn many_turns(last: impl IntoIterator<Item = What>) -> Vec<What> {
    let turns = KNOWN_MAX as u64 * 2;
    let all = (1..=turns).flat_map(|number| turn(number, number));
    all.chain(last).collect()
}

#[test]
fn a_long_history_is_looked_at_to_its_end() {
    let (next, other) = (KNOWN_MAX as u64 * 2 + 1, KNOWN_MAX as u64 * 2 + 2);
    is_explained(many_turns(turn(next, next)));
    is_not_explained(many_turns([
        asks(next),
        gets(next, next),
        asks(other),
        gets(other, other),
    ]));
}

#[test]
fn a_holder_from_before_the_window_is_remembered_as_somebody() {
    // It dies two windows before the last look, and everybody after it asks in vain.
    let waits = (2..)
        .take(KNOWN_MAX * 2)
        .flat_map(|number| [looks(number), sees(number, Some(1))]);
    let start = [asks(1), gets(1, 1), dies(1)];
    is_explained(start.into_iter().chain(waits).chain([asks(2), gets(2, 2)]));
}

/// A window less this many known operations, so that what follows sits on the border to the next one.
fn all_but(last: usize) -> impl Iterator<Item = What> {
    let looked = (0..KNOWN_MAX - last).map(|number| 1_000 + number as u64);
    looked.flat_map(|number| [looks(number), sees(number, None)])
}

#[test]
fn a_holder_from_the_window_before_still_holds() {
    // Its grant is the last thing in one window; in the next, another one gets the lock before it lets go.
    let holds = all_but(1).chain([asks(1), gets(1, 1)]);
    is_explained(holds.chain([lets_go(1), released(1)]).chain(turn(2, 2)));
    let holds = all_but(1).chain([asks(1), gets(1, 1)]);
    is_not_explained(holds.chain([asks(2), gets(2, 2), lets_go(1), released(1)]));
}

#[test]
fn a_look_that_began_in_the_window_before_may_have_seen_what_was_there() {
    let before = [asks(1), gets(1, 1), looks(1), lets_go(1), released(1)];
    let after = [asks(2), gets(2, 2), sees(1, Some(1))];
    is_explained(all_but(2).chain(before).chain(after));
}

#[test]
fn an_answer_that_comes_a_window_too_late_is_still_explained() {
    // It held in between, died, and the answer to its question was read when others had held after it.
    let before = [asks(1), dies(1), asks(2), gets(2, 2)];
    let after = [looks(1), sees(1, Some(2)), lets_go(2), released(2), gets(1, 1)];
    is_explained(all_but(1).chain(before).chain(after));
}

#[test]
fn tokens_that_nobody_was_told_do_not_turn_back_either() {
    // In a window that does not know who holds: somebody unknown may have ended it, but not gone back to it.
    let seen = |first, second| {
        [
            asks(1),
            looks(1),
            sees(1, Some(first)),
            looks(2),
            sees(2, Some(second)),
        ]
    };
    is_explained(all_but(0).chain(seen(5, 6)).chain([asks(2), asks(3)]));
    is_not_explained(all_but(0).chain(seen(6, 5)).chain([asks(2), asks(3)]));
}

#[test]
fn tokens_that_turn_back_a_window_later_are_not_explained() {
    // Each window by itself is in order.
    let turns = |tokens: u64| (1..=KNOWN_MAX as u64).flat_map(move |n| turn(tokens + n, tokens + n));
    is_explained(turns(100).chain(turns(200)));
    is_not_explained(turns(200).chain(turns(100)));
}

#[test]
fn a_holder_that_a_window_ago_was_somebody_elses_predecessor_cannot_release() {
    let [asked, got, goes, gone] = turn(1, 1);
    let holds = [asked, got]
        .into_iter()
        .chain(all_but(2))
        .chain([asks(2), gets(2, 2)]);
    let found = found(holds.chain([goes, gone]));
    let blamed = found.violations.iter().any(|told| told.contains("Given(2)"));
    assert!(blamed, "the second window is as wrong as the first: {found:?}");
}

#[test]
fn a_window_of_nothing_but_looks_that_began_before_it_is_nothing_to_explain() {
    let looking = 0..2 * KNOWN_MAX as u64;
    let begin = looking.clone().map(looks);
    is_explained(begin.chain(looking.map(|number| sees(number, None))));
}

#[test]
fn what_is_too_open_is_passed_over_and_counted() {
    let unknown = (10..).take(OPEN_MAX).map(asks);
    let found = found(unknown.chain(turn(1, 1)));
    assert_eq!((found.searched, found.passed_over), (0, 1));
}
