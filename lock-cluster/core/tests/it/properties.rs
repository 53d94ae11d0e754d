//! Ten thousand random histories, each applied to the real state and to the naive model, compared after
//! every single command.
//!
//! The seed is printed first. To run the same histories again:
//! `LOCK_CORE_SEED=<seed> cargo nextest run -p lock-core --no-capture properties`; `LOCK_CORE_CASES` makes
//! it more or fewer. A failing history is shrunk to a short one before it is shown.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use lock_core::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::histories::{ACQUIRE_IDS, Deed, NAMES, SESSIONS, Step, Timed, history, limits};
use crate::model::Model;

/// How often each kind of answer and event came up, over all histories.
type Tally = BTreeMap<String, u64>;

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
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::XorShift, &bytes));
    let tally = RefCell::new(Tally::new());
    let outcome = runner.run(&(limits(), history()), |(limits, steps)| {
        Run::new(limits).play(steps, &mut tally.borrow_mut())
    });
    if let Err(failure) = outcome {
        panic!("seed {seed}: {failure}");
    }
    // Histories in which nothing happens agree with everything.
    let tally = tally.into_inner();
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

/// One history: the state, the model, and what can be checked without either.
struct Run {
    state: LockState,
    /// Applies the same and is never restored: what a node is that never lost its memory.
    steady: LockState,
    model: Model,
    clock: u64,
    sent: Vec<Command>,
    highest_token: u64,
    holders: BTreeMap<LockName, (SessionId, AcquireId)>,
}

impl Run {
    fn new(limits: Limits) -> Self {
        Self {
            state: LockState::with_limits(limits),
            steady: LockState::with_limits(limits),
            model: Model::new(limits),
            clock: 10_000,
            sent: vec![],
            highest_token: 0,
            holders: BTreeMap::new(),
        }
    }

    fn play(mut self, steps: Vec<Timed>, tally: &mut Tally) -> Result<(), TestCaseError> {
        for (moved, step) in steps {
            self.clock = self.clock.saturating_add_signed(moved);
            let command = match step {
                Step::Do(command) => command,
                Step::Aimed(name, holder, deed) => match self.aim(&name, holder, deed) {
                    Some(command) => command,
                    None => continue,
                },
                Step::Again(index) if self.sent.is_empty() || index == 0 => continue,
                Step::Again(index) => self.sent[index % self.sent.len()].clone(),
                Step::Restore => {
                    self.restore()?;
                    continue;
                }
            };
            self.sent.push(command.clone());
            self.apply(command, tally)?;
        }
        self.restore()
    }

    /// The command that does this to whoever is there, if anybody is.
    fn aim(&self, name: &LockName, holder: bool, deed: Deed) -> Option<Command> {
        let lock = self.state.lock(name.as_str())?;
        let (session_id, acquire_id) = if holder {
            lock.holder.as_ref().map(|one| (one.session_id, one.acquire_id))?
        } else {
            lock.waiters.first().map(|one| (one.session_id, one.acquire_id))?
        };
        Some(match deed {
            Deed::Break => Command::Break {
                name: name.clone(),
                fencing_token: lock.holder?.fencing_token,
            },
            Deed::Release => Command::Release {
                session_id,
                acquire_id,
            },
            Deed::Abandon(delivery) => Command::Abandon {
                session_id,
                acquire_id,
                delivery,
            },
            Deed::Retry(by) => {
                let asked = |command: &&Command| {
                    matches!(command, Command::Acquire { session_id: s, acquire_id: a, .. }
                        if (*s, *a) == (session_id, acquire_id))
                };
                let mut again = self.sent.iter().rev().find(asked)?.clone();
                if let Command::Acquire { delivery, .. } = &mut again {
                    *delivery = by;
                }
                again
            }
        })
    }

    fn apply(&mut self, command: Command, tally: &mut Tally) -> Result<(), TestCaseError> {
        let at = ClusterTime::from_ms(self.clock);
        let (reply, events) = self.model.apply(self.clock, &command);
        let applied = self.state.apply(at, command.clone());
        if !cfg!(debug_assertions) {
            self.state.check_invariants(); // a debug build has just done it by itself
        }
        prop_assert_eq!(&applied.reply, &reply, "the reply to {:?}", command);
        prop_assert_eq!(&applied.events, &events, "the events of {:?}", command);
        prop_assert_eq!(&self.steady.apply(at, command), &applied);
        self.compare_with_model()?;
        self.check_history(&applied)?;
        count(&applied, tally);
        Ok(())
    }

    fn compare_with_model(&self) -> Result<(), TestCaseError> {
        let Self { state, model, .. } = self;
        prop_assert_eq!(state.now().as_ms(), model.now);
        prop_assert_eq!(state.last_token().get(), model.last_token);
        prop_assert_eq!(state.counts(), model.counts());
        prop_assert_eq!(
            state.next_deadline().map(ClusterTime::as_ms),
            model.next_deadline()
        );
        let locks = model.locks();
        prop_assert_eq!(&state.locks("", usize::MAX), &locks);
        for name in NAMES {
            let known = locks.iter().find(|lock| lock.name.as_str() == name);
            prop_assert_eq!(state.lock(name), known.cloned());
        }
        for session in 1..=SESSIONS {
            let session = SessionId::new(uuid::Uuid::from_u128(session));
            for id in (1..=ACQUIRE_IDS).map(AcquireId::new) {
                prop_assert_eq!(state.acquisition(session, id), model.acquisition(session, id));
            }
        }
        Ok(())
    }

    /// What any observer of the events can hold against us, without knowing how we work.
    fn check_history(&mut self, applied: &Applied) -> Result<(), TestCaseError> {
        for event in &applied.events {
            match event {
                Event::Granted {
                    session_id,
                    acquire_id,
                    fencing_token,
                    names,
                } => {
                    prop_assert!(fencing_token.get() > self.highest_token, "a token did not grow");
                    self.highest_token = fencing_token.get();
                    for name in names {
                        let before = self.holders.insert(name.clone(), (*session_id, *acquire_id));
                        prop_assert_eq!(before, None, "{} has two holders", name);
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
                        prop_assert_eq!(before, Some((*session_id, *acquire_id)));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), TestCaseError> {
        let bytes = postcard::to_stdvec(&self.state.snapshot()).unwrap();
        let steady = postcard::to_stdvec(&self.steady.snapshot()).unwrap();
        prop_assert_eq!(&bytes, &steady, "two replicas of one log differ");
        self.state = LockState::restore(postcard::from_bytes(&bytes).unwrap()).unwrap();
        self.state.check_invariants();
        let again = postcard::to_stdvec(&self.state.snapshot()).unwrap();
        prop_assert_eq!(bytes, again, "a restored state is another one");
        Ok(())
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
