//! The checks on histories that were broken by hand: each rule is broken once, and seen; and what is allowed is not.

use lock_core::{
    AcquireId, Event, FencingToken, LockName, LockNames, ReleaseReason, SessionEnd, SessionId, TtlMs, WaitEnd,
};
use lock_history::book::Book;
use lock_history::{Attempt, Moment, Verdict, What, check};
use uuid::Uuid;

fn session(number: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(number))
}

/// The first attempt of a session.
fn ana() -> Attempt {
    attempt(0xa, 1)
}

fn ben() -> Attempt {
    attempt(0xb, 1)
}

fn attempt(of: u128, id: u64) -> Attempt {
    Attempt {
        session: session(of),
        id: AcquireId::new(id),
    }
}

fn names(names: &[&str]) -> LockNames {
    LockNames::parse(names).unwrap()
}

fn gate() -> LockName {
    LockName::parse("gate").unwrap()
}

fn asked(attempt: Attempt) -> What {
    What::Asked(attempt, names(&["gate"]))
}

fn granted(attempt: Attempt, token: u64) -> What {
    What::Told(attempt, Verdict::Granted(token))
}

/// What the check says to these moments, a second apart.
fn found(whats: Vec<What>) -> String {
    let moments = whats.into_iter().enumerate().map(|(second, what)| Moment {
        at: second as u64 * 1_000_000_000,
        what,
    });
    check(&moments.collect::<Vec<_>>()).join("\n")
}

#[track_caller]
fn assert_found(whats: Vec<What>, violation: &str) {
    let found = found(whats);
    assert!(found.contains(violation), "found: {found:?}");
}

#[test]
fn a_history_in_which_all_is_well_passes() {
    let history = vec![
        asked(ana()),
        asked(ben()),
        granted(ana(), 1),
        // Asked again while holding: the same answer.
        granted(ana(), 1),
        What::Looks(1, gate()),
        What::Saw(1, Some(1)),
        What::LetGo(ana()),
        granted(ben(), 2),
        What::Released(ana()),
        What::Told(ana(), Verdict::Released),
        What::Looks(2, gate()),
        What::Distrusted(session(0xb)),
        What::Saw(2, None),
        What::Expired(session(0xb)),
    ];
    assert_eq!(found(history), "");
}

#[test]
fn two_holders_at_once_are_found() {
    let history = vec![asked(ana()), asked(ben()), granted(ana(), 1), granted(ben(), 2)];
    assert_found(history, "while another does under 1");
}

#[test]
fn two_holders_of_one_of_several_names_are_found() {
    let history = vec![
        What::Asked(ana(), names(&["yard", "gate"])),
        asked(ben()),
        granted(ana(), 1),
        granted(ben(), 2),
    ];
    assert_found(history, "holds gate under token 2 while another does under 1");
}

#[test]
fn a_holder_whose_release_has_no_answer_yet_holds_no_longer() {
    let history = vec![
        asked(ana()),
        asked(ben()),
        granted(ana(), 1),
        What::LetGo(ana()),
        granted(ben(), 2),
    ];
    assert_eq!(found(history), "");
}

#[test]
fn a_holder_that_does_not_trust_its_session_holds_no_longer() {
    let history = vec![
        asked(ana()),
        asked(ben()),
        granted(ana(), 1),
        What::Distrusted(session(0xa)),
        granted(ben(), 2),
        // Late news for Ana, who does not believe it.
        granted(ana(), 1),
    ];
    assert_eq!(found(history), "");
}

#[test]
fn a_token_that_does_not_grow_is_found() {
    let history = vec![
        asked(ana()),
        granted(ana(), 5),
        What::LetGo(ana()),
        asked(ben()),
        granted(ben(), 4),
    ];
    assert_found(history, "asked after token Some(5) was told, and got 4");
}

#[test]
fn tokens_of_those_who_asked_at_the_same_time_may_be_told_in_any_order() {
    let other = attempt(0xc, 1);
    let history = vec![
        asked(ana()),
        What::Asked(other, names(&["yard"])),
        granted(ana(), 5),
        granted(other, 4),
    ];
    assert_eq!(found(history), "");
}

#[test]
fn a_token_given_twice_is_found() {
    let history = vec![
        asked(ana()),
        asked(ben()),
        granted(ana(), 1),
        What::LetGo(ana()),
        granted(ben(), 1),
    ];
    assert_found(history, "token 1 was given to");
}

#[test]
fn another_answer_to_the_same_question_is_found() {
    assert_found(
        vec![asked(ana()), granted(ana(), 1), granted(ana(), 2)],
        "and then Granted(2)",
    );
    let history = vec![
        asked(ana()),
        What::Told(ana(), Verdict::TimedOut),
        granted(ana(), 1),
    ];
    assert_found(history, "was told TimedOut, and then Granted(1)");
    let history = vec![
        asked(ana()),
        granted(ana(), 1),
        What::Told(ana(), Verdict::Abandoned),
    ];
    assert_found(history, "and then Abandoned");
}

#[test]
fn a_released_attempt_that_holds_again_is_found() {
    let history = vec![
        asked(ana()),
        granted(ana(), 1),
        What::LetGo(ana()),
        What::Released(ana()),
        granted(ana(), 2),
    ];
    assert_found(history, "was released, and granted again");
}

#[test]
fn a_grant_that_nobody_remembers_at_its_release_is_found() {
    let history = vec![
        asked(ana()),
        granted(ana(), 1),
        What::LetGo(ana()),
        What::NotHeld(ana()),
    ];
    assert_found(history, "had never held");
}

#[test]
fn a_session_ended_before_its_time_is_found() {
    let history = vec![asked(ana()), granted(ana(), 1), What::Expired(session(0xa))];
    assert_found(history, "was ended before its time");
}

#[test]
fn only_a_break_explains_a_broken_lock() {
    let broken = What::Told(ana(), Verdict::Broken);
    assert_found(
        vec![asked(ana()), granted(ana(), 1), broken.clone()],
        "and then Broken",
    );
    let history = vec![asked(ana()), granted(ana(), 1), What::Breaks(1), broken];
    assert_eq!(found(history), "");
}

#[test]
fn a_stale_look_is_found() {
    let history = vec![
        asked(ana()),
        granted(ana(), 1),
        What::LetGo(ana()),
        What::Released(ana()),
        What::Looks(1, gate()),
        What::Saw(1, Some(1)),
    ];
    assert_found(history, "which had been released before");
    let history = vec![
        asked(ana()),
        granted(ana(), 1),
        What::Looks(1, gate()),
        What::Saw(1, None),
    ];
    assert_found(history, "was held under 1 all the time");
}

fn opened(of: u128) -> Event {
    Event::SessionOpened {
        session_id: session(of),
        ttl: TtlMs::new(1_000).unwrap(),
        label: Default::default(),
    }
}

fn queued(Attempt { session, id }: Attempt) -> Event {
    Event::Queued {
        session_id: session,
        acquire_id: id,
        names: names(&["gate"]),
    }
}

fn given(Attempt { session, id }: Attempt, token: u64) -> Event {
    Event::Granted {
        session_id: session,
        acquire_id: id,
        fencing_token: FencingToken::new(token),
        names: names(&["gate"]),
    }
}

fn taken(Attempt { session, id }: Attempt, token: u64) -> Event {
    Event::Released {
        session_id: session,
        acquire_id: id,
        fencing_token: FencingToken::new(token),
        names: names(&["gate"]),
        reason: ReleaseReason::Released,
    }
}

/// What the book says to the last of these events, each an entry of its own.
fn last(events: &[Event]) -> Result<(), String> {
    let mut book = Book::default();
    let (last, before) = events.split_last().unwrap();
    for event in before {
        book.take(event).unwrap();
    }
    book.take(last)?;
    book.close_entry()
}

#[test]
fn a_book_in_which_all_is_well_passes() {
    let mut book = Book::default();
    let entries = [
        vec![opened(0xa), opened(0xb)],
        vec![given(ana(), 1)],
        vec![queued(ben())],
        vec![taken(ana(), 1), given(ben(), 2)],
    ];
    for entry in entries {
        entry.iter().for_each(|event| book.take(event).unwrap());
        book.close_entry().unwrap();
    }
}

#[test]
fn a_grant_past_the_line_is_found() {
    let cyd = attempt(0xc, 1);
    let start = [
        opened(0xa),
        opened(0xb),
        opened(0xc),
        given(ana(), 1),
        queued(ben()),
    ];
    let says = last(&[&start[..], &[given(cyd, 2)]].concat());
    assert!(says.unwrap_err().contains("past those in line"));
    let says = last(&[&start[..], &[queued(cyd), taken(ana(), 1), given(cyd, 2)]].concat());
    assert!(says.unwrap_err().contains("before its turn"));
}

#[test]
fn somebody_forgotten_in_front_of_a_free_lock_is_found() {
    let events = [
        opened(0xa),
        opened(0xb),
        given(ana(), 1),
        queued(ben()),
        taken(ana(), 1),
    ];
    assert!(last(&events).unwrap_err().contains("was forgotten"));
}

#[test]
fn an_attempt_that_comes_again_is_found() {
    let events = [opened(0xa), given(ana(), 1), taken(ana(), 1), given(ana(), 2)];
    assert!(last(&events).unwrap_err().contains("came in again"));
    let ended = Event::WaitEnded {
        session_id: ben().session,
        acquire_id: ben().id,
        names: names(&["gate"]),
        reason: WaitEnd::TimedOut,
    };
    let events = [
        opened(0xa),
        opened(0xb),
        given(ana(), 1),
        queued(ben()),
        ended,
        queued(ben()),
    ];
    assert!(last(&events).unwrap_err().contains("came in again"));
}

#[test]
fn a_token_that_turns_back_is_found_in_the_book() {
    let events = [
        opened(0xa),
        opened(0xb),
        given(ana(), 7),
        taken(ana(), 7),
        given(ben(), 7),
    ];
    assert!(last(&events).unwrap_err().contains("got token 7 after 7"));
}

#[test]
fn a_session_that_leaves_something_behind_is_found() {
    let closed = Event::SessionClosed {
        session_id: session(0xa),
        reason: SessionEnd::Expired,
    };
    let events = [opened(0xa), given(ana(), 1), closed.clone()];
    assert!(last(&events).unwrap_err().contains("is still there"));
    let events = [opened(0xa), closed, given(ana(), 1)];
    assert!(last(&events).unwrap_err().contains("its session is over"));
}
