//! Ten thousand random histories, each applied to the real state and to the naive model, compared after
//! every single command (with `proptest-state-machine`; the model and what it makes of a step are in `reference`).
//!
//! The seed is printed first. To run the same histories again:
//! `LOCK_CORE_SEED=<seed> cargo nextest run -p lock-core --no-capture properties`; `LOCK_CORE_CASES` makes
//! it more or fewer. A failing history is shrunk to a short one before it is shown.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;

use lock_core::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::histories::{ACQUIRE_IDS, NAMES, SESSIONS, Step, Timed};
use crate::reference::{Answered, Past, Reference};

/// How often each kind of answer and event came up, over all histories.
type Tally = BTreeMap<String, u64>;

thread_local! {
    static TALLY: RefCell<Tally> = const { RefCell::new(Tally::new()) };
}

#[test]
fn the_state_does_what_the_naive_model_does() {
    let seed = number("LOCK_CORE_SEED").unwrap_or_else(|| RandomState::new().hash_one("seed"));
    let cases = number("LOCK_CORE_CASES").unwrap_or(10_000) as u32;
    println!("{cases} histories; the same again with LOCK_CORE_SEED={seed} LOCK_CORE_CASES={cases}");

    // Not ChaCha: unoptimised, it would take more time than everything that is tested.
    let mut bytes = [0x5e; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner =
        TestRunner::new_with_rng(config.clone(), TestRng::from_seed(RngAlgorithm::XorShift, &bytes));
    let histories = Reference::sequential_strategy(1..60);
    let outcome = runner.run(&histories, |(initial, steps, seen)| {
        Run::test_sequential(config.clone(), initial, steps, seen);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("seed {seed}: {failure}");
    }
    // Histories in which nothing happens agree with everything.
    let tally = TALLY.with_borrow_mut(mem::take);
    println!("{tally:#?}");
    if cases >= 10_000 {
        for kind in EXPECTED {
            assert!(
                tally.get(*kind).is_some_and(|n| *n >= 50),
                "{kind} hardly ever came up"
            );
        }
    }
}

/// Everything that a run must have met, or it has proved little.
const EXPECTED: &[&str] = &[
    "Reply Acquire(Abandoned)",
    "Reply Acquire(Broken)",
    "Reply Acquire(Granted)",
    "Reply Acquire(Held)",
    "Reply Acquire(Queued)",
    "Reply Acquire(Released)",
    "Reply Acquire(TimedOut)",
    "Reply Broken",
    "Reply Expired",
    "Reply KeptAlive",
    "Reply Refused(Acknowledged)",
    "Reply Refused(NamesDiffer)",
    "Reply Refused(NotHeld)",
    "Reply Refused(SessionExpired)",
    "Reply Refused(StaleToken)",
    "Reply Refused(TokenFloorTooHigh)",
    "Reply Refused(TooManyAcquisitions)",
    "Reply Refused(TooManyNames)",
    "Reply Refused(TooManySessions)",
    "Reply Refused(TooManyUnacknowledged)",
    "Reply Refused(TooManyWaiters)",
    "Reply Released",
    "Reply SessionClosed",
    "Reply SessionOpened",
    "Reply TokenFloor",
    "granted after a wait",
    "granted several names after a wait",
    "reminded of a broken lock",
    "Released Abandoned",
    "Released Broken",
    "Released Released",
    "Released SessionClosed",
    "Released SessionExpired",
    "WaitEnded Abandoned",
    "WaitEnded Released",
    "WaitEnded SessionClosed",
    "WaitEnded SessionExpired",
    "WaitEnded TimedOut",
];

/// The real thing, and what can be checked of it without the model.
struct Run {
    state: LockState,
    /// Applies the same and is never restored: what a node is that never lost its memory.
    steady: LockState,
    highest_token: u64,
    holders: BTreeMap<LockName, (SessionId, AcquireId)>,
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Reference;

    fn init_test(past: &Past) -> Self {
        let mut run = Self {
            state: LockState::with_limits(past.limits),
            steady: LockState::with_limits(past.limits),
            highest_token: 0,
            holders: BTreeMap::new(),
        };
        // The model has met everybody who is there from the start; the real state meets them now.
        let fresh = Past::before(past);
        past.openings.iter().fold(fresh, |past, opening| {
            let past = past.take(opening);
            run.follow(&past);
            past
        });
        run
    }

    fn apply(mut run: Self, past: &Past, (_, step): Timed) -> Self {
        if matches!(step, Step::Restore) {
            run.restore();
        }
        run.follow(past);
        run
    }

    fn check_invariants(run: &Self, past: &Past) {
        run.compare_with_model(past);
    }

    fn teardown(mut run: Self, _: Past) {
        run.restore();
    }
}

impl Run {
    /// Does what the model has just done.
    fn follow(&mut self, past: &Past) {
        let Some(Answered {
            at,
            command,
            reply,
            events,
        }) = &past.last
        else {
            return;
        };
        let at = ClusterTime::from_ms(*at);
        let applied = self.state.apply(at, command.clone());
        if !cfg!(debug_assertions) {
            self.state.check_invariants(); // a debug build has just done it by itself
        }
        assert_eq!(&applied.reply, reply, "the reply to {command:?}");
        assert_eq!(&applied.events, events, "the events of {command:?}");
        assert_eq!(self.steady.apply(at, command.clone()), applied);
        self.check_history(&applied);
        TALLY.with_borrow_mut(|tally| count(&applied, tally));
    }

    fn compare_with_model(&self, Past { model, .. }: &Past) {
        let state = &self.state;
        assert_eq!(state.now().as_ms(), model.now);
        assert_eq!(state.last_token().get(), model.last_token);
        assert_eq!(state.counts(), model.counts());
        assert_eq!(
            state.next_deadline().map(ClusterTime::as_ms),
            model.next_deadline()
        );
        let locks = model.locks();
        assert_eq!(&state.locks("", usize::MAX), &locks);
        for name in NAMES {
            let known = locks.iter().find(|lock| lock.name.as_str() == name);
            assert_eq!(state.lock(name), known.cloned());
        }
        for session in 1..=SESSIONS {
            let session = SessionId::new(uuid::Uuid::from_u128(session));
            for id in (1..=ACQUIRE_IDS).map(AcquireId::new) {
                assert_eq!(state.acquisition(session, id), model.acquisition(session, id));
            }
        }
    }

    /// What any observer of the events can hold against us, without knowing how we work.
    fn check_history(&mut self, applied: &Applied) {
        for event in &applied.events {
            match event {
                Event::Granted {
                    session_id,
                    acquire_id,
                    fencing_token,
                    names,
                } => {
                    assert!(fencing_token.get() > self.highest_token, "a token did not grow");
                    self.highest_token = fencing_token.get();
                    for name in names {
                        let before = self.holders.insert(name.clone(), (*session_id, *acquire_id));
                        assert_eq!(before, None, "{} has two holders", name);
                    }
                }
                Event::Released {
                    session_id,
                    acquire_id,
                    names,
                    ..
                } => {
                    for name in names {
                        let before = self.holders.remove(name);
                        assert_eq!(before, Some((*session_id, *acquire_id)));
                    }
                }
                _ => {}
            }
        }
    }

    fn restore(&mut self) {
        let bytes = postcard::to_stdvec(&self.state.snapshot()).unwrap();
        let steady = postcard::to_stdvec(&self.steady.snapshot()).unwrap();
        assert_eq!(bytes, steady, "two replicas of one log differ");
        self.state = LockState::restore(postcard::from_bytes(&bytes).unwrap()).unwrap();
        self.state.check_invariants();
        let again = postcard::to_stdvec(&self.state.snapshot()).unwrap();
        assert_eq!(bytes, again, "a restored state is another one");
    }
}

fn count(applied: &Applied, tally: &mut Tally) {
    let mut saw = |kind: String| *tally.entry(kind).or_default() += 1;
    let variant = |debug: String| debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    match &applied.reply {
        Reply::Acquire(answer) => saw(format!("Reply Acquire({})", variant(format!("{answer:?}")))),
        Reply::Refused(refusal) => saw(format!("Reply Refused({refusal:?})")),
        Reply::KeptAlive { broken, .. } if !broken.is_empty() => saw("reminded of a broken lock".into()),
        reply => saw(format!("Reply {}", variant(format!("{reply:?}")))),
    }
    let at_once = matches!(applied.reply, Reply::Acquire(AcquireAnswer::Granted { .. }));
    for event in &applied.events {
        match event {
            Event::Granted { names, .. } if !at_once => {
                saw("granted after a wait".into());
                if names.as_slice().len() > 1 {
                    saw("granted several names after a wait".into());
                }
            }
            Event::Released { reason, .. } => saw(format!("Released {reason:?}")),
            Event::WaitEnded { reason, .. } => saw(format!("WaitEnded {reason:?}")),
            _ => {}
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}
