//! Sizes at which a careless structure shows: a walk over a long line for each that leaves it, a trace
//! left by each name that was ever locked.

use lock_core::*;

fn session(n: u128) -> SessionId {
    SessionId::new(uuid::Uuid::from_u128(n))
}

fn open(state: &mut LockState, at: u64, n: u128) {
    let ttl = TtlMs::new(5_000).unwrap();
    let open = Command::OpenSession {
        session_id: session(n),
        ttl,
        label: Label::default(),
    };
    state.apply(ClusterTime::from_ms(at), open);
}

fn acquire(n: u128, id: u64, name: &str) -> Command {
    Command::Acquire {
        session_id: session(n),
        acquire_id: AcquireId::new(id),
        names: LockNames::parse(&[name]).unwrap(),
        wait: WaitMs::new(60_000).unwrap(),
        delivery: Delivery::new(0),
    }
}

fn release(n: u128, id: u64) -> Command {
    Command::Release {
        session_id: session(n),
        acquire_id: AcquireId::new(id),
    }
}

fn encoded(state: &LockState) -> usize {
    postcard::to_stdvec(&state.snapshot()).unwrap().len()
}

#[test]
fn names_that_were_locked_leave_no_trace() {
    let mut state = LockState::new();
    open(&mut state, 0, 1);
    let before = encoded(&state);
    for id in 1..=20_000 {
        state.apply(ClusterTime::ZERO, acquire(1, id, &format!("event/{id}")));
        state.apply(ClusterTime::ZERO, release(1, id));
        if id % 500 == 0 {
            let acknowledged = Some(AcquireId::new(id));
            state.apply(
                ClusterTime::ZERO,
                Command::KeepAlive {
                    session_id: session(1),
                    acknowledged,
                },
            );
        }
    }
    assert_eq!(
        state.counts(),
        Counts {
            sessions: 1,
            ..Counts::default()
        }
    );
    assert!(
        encoded(&state) <= before + 16,
        "only the counters may have got longer"
    );
    assert_eq!(state.last_token().get(), 20_000, "and those are never forgotten");
}

/// The worst order for a queue: everybody leaves from the far end. (A debug build checks the whole state
/// as it goes, but the more seldom the bigger it is, so this is quick all the same.)
#[test]
fn a_full_line_empties_from_its_end_without_anybody_looking_at_the_others() {
    let mut state = LockState::new();
    for n in 0..=4_096 {
        open(&mut state, 0, n);
        state.apply(ClusterTime::ZERO, acquire(n, 1, "a"));
    }
    assert_eq!(state.counts().waiters, 4_096);
    let (whole, brief) = (state.lock("a").unwrap(), state.lock_in_brief("a", 3).unwrap());
    assert_eq!((whole.waiters.len(), brief.waiters.len()), (4_096, 3));
    assert_eq!(
        (&brief.holder, &brief.waiters[..]),
        (&whole.holder, &whole.waiters[..3])
    );
    assert_eq!((whole.waiters_total, brief.waiters_total), (4_096, 4_096));
    assert_eq!(state.locks_in_brief("a", 10, 3), [brief]);
    for n in (1..=4_096).rev() {
        let applied = state.apply(ClusterTime::ZERO, release(n, 1));
        assert_eq!(applied.events.len(), 1, "nobody else is concerned");
    }
    assert_eq!(state.lock("a").unwrap().waiters, []);
}

#[test]
fn five_thousand_sessions_die_at_once_and_the_living_one_behind_them_is_granted() {
    let mut state = LockState::new();
    for n in 1..=4_000 {
        open(&mut state, 0, n);
        state.apply(ClusterTime::ZERO, acquire(n, 1, "a"));
    }
    for n in 4_001..=5_000 {
        open(&mut state, 0, n);
        state.apply(ClusterTime::ZERO, acquire(n, 1, "b"));
    }
    open(&mut state, 4_000, 9_999);
    state.apply(ClusterTime::from_ms(4_000), acquire(9_999, 1, "a"));
    let applied = state.apply(ClusterTime::from_ms(5_001), Command::Expire);
    assert_eq!(
        applied.reply,
        Reply::Expired {
            sessions: 5_000,
            waits: 0
        }
    );
    let granted: Vec<_> = applied
        .events
        .iter()
        .filter(|e| matches!(e, Event::Granted { .. }))
        .collect();
    assert!(
        matches!(granted[..], [Event::Granted { session_id, .. }] if *session_id == session(9_999)),
        "{granted:?}"
    );
    state.check_invariants();
}
