//! The saga's three tests (fail at every step, repeat every step, crash after every write), and a property
//! over all of them at once, in a simulated world.

use proptest::prelude::*;
use ticketing_types::checkout::PurchaseStatus;

use super::world::{STORMS, Weather, World, price};
use super::{Done, Outcome, Rejection, Saga, Step};

/// The book: what a crash leaves.
fn write(saga: &Saga) -> String {
    serde_json::to_string(saga).expect("a saga is plain data")
}

fn read(book: &str) -> Saga {
    serde_json::from_str(book).expect("what was written can be read")
}

/// When a driver dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crash {
    Never,
    /// After the n-th write, before the next step.
    AfterWrite(usize),
    /// After the n-th step was taken, before its record was written.
    BeforeWrite(usize),
}

/// Goes round the loop as the real driver does: step, record, write. Whoever dies is replaced by one who reads
/// the book. `weather(n)` is that of the n-th step; `cancel_before` calls the purchase off before the n-th step.
fn drive(
    weather: impl Fn(usize) -> Weather,
    crash: Crash,
    cancel_before: Option<usize>,
) -> (Saga, World, usize) {
    let mut world = World::new();
    let mut saga = Saga::begin();
    let mut book = write(&saga);
    let mut cancel_requested = false;
    let mut steps = 0;
    loop {
        if crash == Crash::AfterWrite(steps) {
            saga = read(&book).resume();
        }
        cancel_requested |= cancel_before == Some(steps);
        if cancel_requested && saga.cancel() {
            book = write(&saga);
        }
        let Some(step) = saga.next() else { break };
        let outcome = world.take(step, weather(steps));
        if crash == Crash::BeforeWrite(steps) {
            saga = read(&book).resume();
        } else {
            saga.record(step, outcome);
            book = write(&saga);
        }
        steps += 1;
        assert!(steps < 100, "goes round in circles: {saga:?}");
    }
    // The buyer may still call it off when all is over.
    assert_eq!(read(&book), saga);
    world.deliver_the_delayed();
    world.check(&saga);
    (saga, world, steps)
}

#[test]
fn in_fair_weather_a_purchase_takes_four_steps() {
    let (saga, world, steps) = drive(|_| Weather::Fair, Crash::Never, None);
    assert_eq!(
        (saga.status(), steps, world.captures),
        (PurchaseStatus::Completed, 4, 1)
    );
}

#[test]
fn failing_at_any_step_leaves_either_a_sale_or_nothing() {
    for failing in 0..6 {
        for storm in STORMS {
            for also in 0..6 {
                // A second failure right on the way that the first one opened.
                drive(
                    |n| {
                        if n == failing || n == also {
                            storm
                        } else {
                            Weather::Fair
                        }
                    },
                    Crash::Never,
                    None,
                );
            }
        }
    }
}

#[test]
fn repeating_any_step_changes_nothing() {
    let (fair, ..) = drive(|_| Weather::Fair, Crash::Never, None);
    for repeated in 0..4 {
        for storm in [
            Weather::LostReply,
            Weather::Twice,
            Weather::Late,
            Weather::LostRequest,
        ] {
            let weather = |n| if n == repeated { storm } else { Weather::Fair };
            let (saga, world, _) = drive(weather, Crash::Never, None);
            assert_eq!(
                (saga, world.captures),
                (fair.clone(), 1),
                "{storm:?} at {repeated}"
            );
        }
    }
}

#[test]
fn a_crash_around_any_write_is_made_good_from_the_book() {
    for at in 0..6 {
        for crash in [Crash::AfterWrite(at), Crash::BeforeWrite(at)] {
            let (saga, ..) = drive(|_| Weather::Fair, crash, None);
            assert_eq!(saga.status(), PurchaseStatus::Completed, "{crash:?}");
            for failing in 0..6 {
                for storm in STORMS {
                    drive(|n| if n == failing { storm } else { Weather::Fair }, crash, None);
                }
            }
        }
    }
}

#[test]
fn calling_off_before_the_pivot_rejects_and_after_it_refunds() {
    let status = |at| drive(|_| Weather::Fair, Crash::Never, Some(at)).0.status();
    assert_eq!(status(0), PurchaseStatus::Rejected);
    assert_eq!(status(1), PurchaseStatus::Rejected);
    assert_eq!(status(2), PurchaseStatus::Rejected);
    assert_eq!(status(3), PurchaseStatus::Cancelled);
    assert_eq!(status(4), PurchaseStatus::Cancelled);
}

#[test]
fn a_decline_gives_the_seats_back_without_a_word_to_the_payment() {
    let mut saga = Saga::begin();
    saga.record(
        Step::PlaceHold,
        Outcome::Done(Done::HoldPlaced { amount: price() }),
    );
    let authorize = Step::Authorize { amount: price() };
    saga.record(authorize, Outcome::Rejected(Rejection::PaymentDeclined));
    assert_eq!(saga.next(), Some(Step::ReleaseHold));
}

#[test]
fn a_refusal_after_an_unknown_hold_still_closes_its_id() {
    let mut saga = Saga::begin();
    saga.record(Step::PlaceHold, Outcome::Unknown);
    saga.record(
        Step::PlaceHold,
        Outcome::Rejected(Rejection::SoldOut { lines: vec![] }),
    );
    assert_eq!(saga.next(), Some(Step::ReleaseHold));
}

#[test]
fn undo_after_an_unknown_authorization_still_voids_it() {
    let mut saga = Saga::begin();
    saga.record(
        Step::PlaceHold,
        Outcome::Done(Done::HoldPlaced { amount: price() }),
    );
    saga.record(Step::Authorize { amount: price() }, Outcome::Unknown);
    assert!(saga.cancel());
    assert_eq!(saga.next(), Some(Step::VoidPayment));
}

#[test]
fn once_the_pivot_may_have_been_asked_for_there_is_no_way_back() {
    let mut saga = Saga::begin();
    saga.record(
        Step::PlaceHold,
        Outcome::Done(Done::HoldPlaced { amount: price() }),
    );
    saga.record(
        Step::Authorize { amount: price() },
        Outcome::Done(Done::Authorized),
    );
    assert!(saga.clone().cancel());
    assert!(!saga.clone().resume().cancel());
    saga.record(Step::ConfirmHold, Outcome::Unknown);
    assert!(!saga.cancel());
}

#[test]
fn busy_ends_a_purchase_only_while_nothing_can_have_happened() {
    let mut fresh = Saga::begin();
    fresh.record(Step::PlaceHold, Outcome::Busy);
    assert_eq!(fresh.rejection(), Some(&Rejection::Busy));

    let mut found = Saga::begin().resume();
    found.record(Step::PlaceHold, Outcome::Busy);
    assert_eq!(found.next(), Some(Step::PlaceHold));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn no_weather_breaks_a_promise(
        weather in prop::collection::vec(prop_oneof![Just(Weather::Fair), prop::sample::select(STORMS.to_vec())], 0..20),
        crash_at in 0_usize..12,
        before_write: bool,
        cancel_before in prop::option::of(0_usize..12),
    ) {
        let crash = if before_write { Crash::BeforeWrite(crash_at) } else { Crash::AfterWrite(crash_at) };
        drive(|n| weather.get(n).copied().unwrap_or(Weather::Fair), crash, cancel_before);
    }
}
