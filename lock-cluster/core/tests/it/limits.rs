//! Each limit: the last one that fits, the first one that does not, and room again when somebody leaves.

use lock_core::*;

fn session(n: u128) -> SessionId {
    SessionId::new(uuid::Uuid::from_u128(n))
}

fn state(change: impl FnOnce(&mut Limits)) -> LockState {
    let mut limits = Limits::STANDARD;
    change(&mut limits);
    LockState::with_limits(limits)
}

fn apply(state: &mut LockState, command: Command) -> Reply {
    state.apply(ClusterTime::ZERO, command).reply
}

fn open(state: &mut LockState, n: u128) -> Reply {
    let ttl = TtlMs::new(5_000).unwrap();
    apply(
        state,
        Command::OpenSession {
            session_id: session(n),
            ttl,
            label: Label::default(),
        },
    )
}

fn acquire(state: &mut LockState, n: u128, id: u64, names: &[&str], wait: u64) -> Reply {
    let command = Command::Acquire {
        session_id: session(n),
        acquire_id: AcquireId::new(id),
        names: LockNames::parse(names).unwrap(),
        wait: WaitMs::new(wait).unwrap(),
        delivery: Delivery::new(0),
    };
    apply(state, command)
}

fn release(state: &mut LockState, n: u128, id: u64) -> Reply {
    apply(
        state,
        Command::Release {
            session_id: session(n),
            acquire_id: AcquireId::new(id),
        },
    )
}

fn acknowledge(state: &mut LockState, n: u128, id: u64) {
    let acknowledged = Some(AcquireId::new(id));
    apply(
        state,
        Command::KeepAlive {
            session_id: session(n),
            acknowledged,
        },
    );
}

#[track_caller]
fn assert_granted(reply: &Reply) {
    assert!(
        matches!(reply, Reply::Acquire(AcquireAnswer::Granted { .. })),
        "{reply:?}"
    );
}

const QUEUED: Reply = Reply::Acquire(AcquireAnswer::Queued);

#[test]
fn sessions_have_a_limit() {
    let mut state = state(|limits| limits.sessions = 2);
    open(&mut state, 1);
    open(&mut state, 2);
    assert_eq!(open(&mut state, 3), Reply::Refused(Refusal::TooManySessions));
    assert!(
        matches!(open(&mut state, 2), Reply::SessionOpened { created: false, .. }),
        "it is there already"
    );
    apply(
        &mut state,
        Command::CloseSession {
            session_id: session(1),
        },
    );
    assert!(matches!(
        open(&mut state, 3),
        Reply::SessionOpened { created: true, .. }
    ));
}

#[test]
fn a_session_has_at_most_1024_unacknowledged_attempts() {
    let mut state = LockState::new();
    open(&mut state, 1);
    for id in 1..=1_024 {
        assert_granted(&acquire(&mut state, 1, id, &["a"], 0));
        release(&mut state, 1, id);
    }
    let full = Reply::Refused(Refusal::TooManyUnacknowledged);
    assert_eq!(acquire(&mut state, 1, 1_025, &["a"], 0), full);
    assert_eq!(
        release(&mut state, 1, 1_026),
        full,
        "an id cannot be used up without being remembered"
    );
    let known = acquire(&mut state, 1, 1_024, &["a"], 0);
    assert_eq!(
        known,
        Reply::Acquire(AcquireAnswer::Released),
        "what is known is answered all the same"
    );

    acknowledge(&mut state, 1, 1_000);
    assert_eq!(state.counts().acquisitions, 24);
    assert_granted(&acquire(&mut state, 1, 1_025, &["a"], 0));
}

#[test]
fn attempts_have_a_limit_over_all_sessions() {
    let mut state = state(|limits| limits.acquisitions = 2);
    open(&mut state, 1);
    open(&mut state, 2);
    acquire(&mut state, 1, 1, &["a"], 0);
    acquire(&mut state, 2, 1, &["a"], 0);
    let full = Reply::Refused(Refusal::TooManyAcquisitions);
    assert_eq!(acquire(&mut state, 2, 2, &["b"], 0), full);
    assert_eq!(release(&mut state, 2, 2), full);
    acknowledge(&mut state, 2, 1);
    assert_granted(&acquire(&mut state, 2, 2, &["b"], 0));
}

#[test]
fn names_have_a_limit() {
    let mut state = state(|limits| limits.names = 2);
    open(&mut state, 1);
    assert_granted(&acquire(&mut state, 1, 1, &["a"], 0));
    let full = Reply::Refused(Refusal::TooManyNames);
    assert_eq!(acquire(&mut state, 1, 2, &["b", "c"], 0), full);
    assert_eq!(
        acquire(&mut state, 1, 2, &["a", "b", "c"], 1),
        full,
        "only the new ones count"
    );
    assert_eq!(acquire(&mut state, 1, 2, &["a", "b"], 1), QUEUED);
    assert_eq!(
        acquire(&mut state, 1, 3, &["a", "c"], 0),
        Reply::Acquire(AcquireAnswer::Held)
    );
    release(&mut state, 1, 1);
    release(&mut state, 1, 2);
    assert_granted(&acquire(&mut state, 1, 4, &["c", "d"], 0));
}

#[test]
fn a_name_has_at_most_4096_waiters() {
    let mut state = LockState::new();
    for n in 1..=5 {
        open(&mut state, n);
    }
    assert_granted(&acquire(&mut state, 1, 0, &["a"], 0));
    for i in 0..4_096u64 {
        let (n, id) = (2 + u128::from(i / 1_024), i % 1_024);
        assert_eq!(acquire(&mut state, n, id, &["a"], 60_000), QUEUED);
    }
    let full = Reply::Refused(Refusal::TooManyWaiters);
    assert_eq!(acquire(&mut state, 1, 1, &["b", "a"], 60_000), full);
    assert_eq!(state.lock("b"), None, "a refusal leaves nothing behind");
    assert_eq!(
        acquire(&mut state, 1, 2, &["a"], 0),
        Reply::Acquire(AcquireAnswer::Held)
    );

    release(&mut state, 1, 0);
    assert_eq!(
        acquire(&mut state, 1, 1, &["b", "a"], 60_000),
        QUEUED,
        "refusals are not remembered"
    );
    assert_eq!(state.counts().waiters, 4_096);
}
