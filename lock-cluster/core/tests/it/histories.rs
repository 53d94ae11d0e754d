//! Random histories: a few sessions, ids and names, so that they meet often; retries, stragglers, clocks
//! that jump and turn back, restarts at any moment.

use lock_core::*;
use proptest::prelude::*;

/// One step of a history.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Do(Command),
    /// Does something to whoever holds this name (true) or waits for it first: what guesses hardly ever do.
    Aimed(LockName, bool, Deed),
    /// Sends an earlier command again: a retry, or a first try that was a long time on its way.
    Again(usize),
    /// Goes through the bytes of a snapshot.
    Restore,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    Break,
    Release,
    /// By the node of this delivery, which may or may not be the latest.
    Abandon(Delivery),
    /// The client asks again, by this delivery.
    Retry(Delivery),
}

/// A step and how much the leader's clock moved before it; it can move backwards.
pub(crate) type Timed = (i64, Step);

pub(crate) const SESSIONS: u128 = 4;
pub(crate) const ACQUIRE_IDS: u64 = 8;
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

fn session() -> impl Strategy<Value = SessionId> {
    (1..=SESSIONS).prop_map(|n| SessionId::new(uuid::Uuid::from_u128(n)))
}

fn acquire_id() -> impl Strategy<Value = AcquireId> {
    (1..=ACQUIRE_IDS).prop_map(AcquireId::new)
}

fn name() -> impl Strategy<Value = LockName> {
    prop::sample::select(NAMES.to_vec()).prop_map(|text| LockName::parse(text).unwrap())
}

fn names() -> impl Strategy<Value = LockNames> {
    prop_oneof![
        3 => name().prop_map(|name| LockNames::new([name]).unwrap()),
        2 => prop::collection::vec(name(), 1..4).prop_map(|names| LockNames::new(names).unwrap()),
    ]
}

fn delivery() -> impl Strategy<Value = Delivery> {
    (1..=2u64).prop_map(Delivery::new)
}

fn command() -> impl Strategy<Value = Command> {
    let ttl = prop::sample::select(vec![500, 1_000, 5_000, 60_000]).prop_map(|ms| TtlMs::new(ms).unwrap());
    let wait = prop::sample::select(vec![0, 1, 100, 1_000, 60_000]).prop_map(|ms| WaitMs::new(ms).unwrap());
    let label = prop::sample::select(vec!["", "x"]).prop_map(|text| Label::parse(text).unwrap());
    let acknowledged = prop::option::weighted(0.3, acquire_id());
    prop_oneof![
        4 => (session(), ttl, label)
            .prop_map(|(session_id, ttl, label)| Command::OpenSession { session_id, ttl, label }),
        2 => (session(), acknowledged)
            .prop_map(|(session_id, acknowledged)| Command::KeepAlive { session_id, acknowledged }),
        1 => session().prop_map(|session_id| Command::CloseSession { session_id }),
        10 => (session(), acquire_id(), names(), wait, delivery()).prop_map(
            |(session_id, acquire_id, names, wait, delivery)| {
                Command::Acquire { session_id, acquire_id, names, wait, delivery }
            }
        ),
        3 => (session(), acquire_id(), delivery()).prop_map(|(session_id, acquire_id, delivery)| {
            Command::Abandon { session_id, acquire_id, delivery }
        }),
        5 => (session(), acquire_id())
            .prop_map(|(session_id, acquire_id)| Command::Release { session_id, acquire_id }),
        1 => (name(), 0..9u64).prop_map(|(name, token)| {
            Command::Break { name, fencing_token: FencingToken::new(token) }
        }),
        3 => Just(Command::Expire),
        1 => prop_oneof![9 => 0..60u64, 1 => Just(u64::MAX)]
            .prop_map(|floor| Command::RaiseTokenFloor { floor: FencingToken::new(floor) }),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        1 => Just(Deed::Break),
        3 => Just(Deed::Release),
        1 => delivery().prop_map(Deed::Abandon),
        1 => delivery().prop_map(Deed::Retry),
    ]
}

thread_local! {
    /// Put together once: it is asked for before every single step.
    static STEP: BoxedStrategy<Timed> = any_step().boxed();
}

pub(crate) fn step() -> BoxedStrategy<Timed> {
    STEP.with(BoxedStrategy::clone)
}

fn any_step() -> impl Strategy<Value = Timed> {
    let clock = prop_oneof![
        6 => 0..3i64,
        2 => 50..150i64,
        // Just before, on, and just after the end of a session of the shortest kind.
        2 => 498..503i64,
        1 => 900..3_000i64,
        1 => -2_000..0i64,
    ];
    let step = prop_oneof![
        20 => command().prop_map(Step::Do),
        6 => (name(), any::<bool>(), deed()).prop_map(|(name, holder, deed)| Step::Aimed(name, holder, deed)),
        4 => any::<prop::sample::Index>().prop_map(|index| Step::Again(index.index(1 << 16))),
        1 => Just(Step::Restore),
    ];
    (clock, step)
}

/// Each limit on its own is either the real one, out of reach here, or a small one.
pub(crate) fn limits() -> impl Strategy<Value = Limits> {
    let or_small = |real: usize, small: std::ops::Range<usize>| prop_oneof![4 => Just(real), 1 => small];
    let real = Limits::STANDARD;
    let all = (
        or_small(real.acquisitions_per_session, 1..6),
        or_small(real.waiters_per_name, 0..3),
        or_small(real.sessions, 1..4),
        or_small(real.names, 1..3),
        or_small(real.acquisitions, 2..9),
    );
    all.prop_map(
        |(acquisitions_per_session, waiters_per_name, sessions, names, acquisitions)| Limits {
            acquisitions_per_session,
            waiters_per_name,
            sessions,
            names,
            acquisitions,
        },
    )
}

/// Everybody who is to be there is there from the start, or most of a history would be refused.
pub(crate) fn openings() -> impl Strategy<Value = Vec<Timed>> {
    prop::collection::vec(
        prop::sample::select(vec![500u64, 5_000, 60_000, 60_000]),
        2..=SESSIONS as usize,
    )
    .prop_map(|ttls| {
        let open = |(n, ms): (u128, u64)| Command::OpenSession {
            session_id: SessionId::new(uuid::Uuid::from_u128(n)),
            ttl: TtlMs::new(ms).unwrap(),
            label: Label::default(),
        };
        (1..)
            .zip(ttls)
            .map(|opening| (1, Step::Do(open(opening))))
            .collect()
    })
}

/// All of it at once, for those who do not ask the model on the way.
pub(crate) fn history() -> impl Strategy<Value = Vec<Timed>> {
    (openings(), prop::collection::vec(step(), 1..60)).prop_map(|(first, rest)| [first, rest].concat())
}
