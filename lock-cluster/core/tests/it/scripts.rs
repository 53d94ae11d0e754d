//! Stories. Each file in `scripts/` is a history with what came of it, written to be read: lines that begin
//! with `>` are played, `#` lines are the narrator's, and the indented lines below are what the state
//! answered (`->`) and what happened (`*`). A file whose recorded trace is not what happens now fails.
//!
//! `UPDATE_SCRIPTS=1 cargo nextest run -p lock-core scripts` writes the traces anew; read the difference
//! before you keep it. What can be played:
//!
//! ```text
//! > 0 ana opens, ttl 5000
//! > 10 ana acquires 1: event/rock, event/jazz            (waits up to 30000 ms)
//! > 10 ana acquires 1: event/rock; waits 500 by node 2   (or `waits 0`; by node 1 if nothing is said)
//! > 20 node 2 abandons 1 of ana
//! > 30 ana releases 1
//! > 40 ana keeps alive                                   (or: ana keeps alive, acknowledges 3)
//! > 50 ana closes
//! > 60 admin breaks event/rock, token 1
//! > 65 admin raises tokens to 100
//! > 70 time passes                                       (an expire)
//! > restart                                              (through the bytes of a snapshot)
//! > look                                                 (at the whole state)
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use lock_core::*;

macro_rules! stories {
    ($($name:ident),* $(,)?) => {
        const STORIES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { check(stringify!($name)); })*
    };
}

stories! {
    a_broken_lock_goes_to_the_next_and_its_holder_is_reminded,
    a_closed_session_gives_everything_back,
    a_delivery_that_comes_late_takes_nothing_along,
    a_free_lock_leaves_no_trace,
    a_keep_alive_ordered_before_expire_wins,
    a_break_needs_the_token_that_holds,
    a_release_that_overtakes_its_acquire_uses_up_the_id,
    a_released_id_stays_released,
    a_repeated_open_keeps_alive_and_changes_nothing_else,
    a_wait_that_is_over_leaves_no_place_in_line,
    a_waiter_whose_session_dies_never_gets_the_lock,
    an_abandon_cannot_take_what_another_delivery_was_granted,
    an_acknowledged_answer_is_forgotten,
    an_acquire_that_does_not_wait_respects_the_line,
    an_id_is_good_for_one_set_of_names,
    carts_in_opposite_order_do_not_deadlock,
    dead_waiters_do_not_delay_the_living,
    late_waiters_leave_before_a_lock_is_handed_on,
    locks_are_not_reentrant,
    nothing_ends_before_its_last_millisecond_is_over,
    release_wakes_the_oldest_waiter,
    the_same_id_gets_the_same_answer,
    time_does_not_turn_back,
    tokens_grow_over_forgotten_names_and_restarts,
    tokens_of_a_restored_cluster_go_on_above_the_lost_one,
    two_names_are_granted_together_or_not_at_all,
}

#[test]
fn every_script_is_played() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    files.sort();
    let mut stories = STORIES.to_vec();
    stories.sort();
    assert_eq!(files, stories);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scripts")
}

fn check(name: &str) {
    let path = folder().join(name).with_extension("txt");
    let recorded = std::fs::read_to_string(&path).unwrap();
    let now = Stage::default().play(&recorded);
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    assert_eq!(
        now,
        recorded,
        "{} tells another story now:\n{now}",
        path.display()
    );
}

/// Where a story is played.
#[derive(Default)]
struct Stage {
    state: LockState,
    /// Session ids are UUIDs; the stories know people.
    cast: BTreeMap<SessionId, String>,
    trace: String,
}

impl Stage {
    fn play(mut self, script: &str) -> String {
        for line in script.lines() {
            if line.starts_with("    ") {
                continue; // what came of it last time
            }
            writeln!(self.trace, "{line}").unwrap();
            if let Some(action) = line.strip_prefix("> ") {
                self.act(action);
            }
        }
        self.trace
    }

    fn act(&mut self, action: &str) {
        match action {
            "restart" => {
                let bytes = postcard::to_stdvec(&self.state.snapshot()).unwrap();
                self.state = LockState::restore(postcard::from_bytes(&bytes).unwrap()).unwrap();
            }
            "look" => self.look(),
            _ => {
                let (at, deed) = action.split_once(' ').unwrap();
                let command = self.command(deed);
                let applied = self
                    .state
                    .apply(ClusterTime::from_ms(at.parse().unwrap()), command);
                self.state.check_invariants();
                let reply = self.reply(&applied.reply);
                self.say(&format!("-> {reply}"));
                for event in &applied.events {
                    let event = self.event(event);
                    self.say(&format!("*  {event}"));
                }
            }
        }
    }

    fn command(&mut self, deed: &str) -> Command {
        let words: Vec<&str> = deed
            .split([' ', ',', ':', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        let after = |word: &str| {
            words
                .iter()
                .position(|w| *w == word)
                .map(|i| words[i + 1].parse().unwrap())
        };
        let number = |i: usize| words[i].parse::<u64>().unwrap();
        match words[..] {
            [who, "opens", ..] => Command::OpenSession {
                session_id: self.session(who),
                ttl: TtlMs::new(after("ttl").unwrap()).unwrap(),
                label: Label::parse(who).unwrap(),
            },
            [who, "keeps", "alive", ..] => Command::KeepAlive {
                session_id: self.session(who),
                acknowledged: after("acknowledges").map(AcquireId::new),
            },
            [who, "closes"] => Command::CloseSession {
                session_id: self.session(who),
            },
            [who, "acquires", ..] => {
                let names = words[3..]
                    .iter()
                    .take_while(|word| !["waits", "by"].contains(word));
                Command::Acquire {
                    session_id: self.session(who),
                    acquire_id: AcquireId::new(number(2)),
                    names: LockNames::parse(&names.collect::<Vec<_>>()).unwrap(),
                    wait: WaitMs::new(after("waits").unwrap_or(30_000)).unwrap(),
                    delivery: Delivery::new(after("node").unwrap_or(1)),
                }
            }
            ["node", _, "abandons", _, "of", who] => Command::Abandon {
                session_id: self.session(who),
                acquire_id: AcquireId::new(number(3)),
                delivery: Delivery::new(number(1)),
            },
            [who, "releases", _] => Command::Release {
                session_id: self.session(who),
                acquire_id: AcquireId::new(number(2)),
            },
            ["admin", "breaks", name, ..] => Command::Break {
                name: LockName::parse(name).unwrap(),
                fencing_token: FencingToken::new(after("token").unwrap()),
            },
            ["time", "passes"] => Command::Expire,
            ["admin", "raises", "tokens", "to", _] => Command::RaiseTokenFloor {
                floor: FencingToken::new(number(4)),
            },
            _ => panic!("nobody knows how to play `{deed}`"),
        }
    }

    /// The same name is the same person, in every story: ids are made of the letters.
    fn session(&mut self, who: &str) -> SessionId {
        let letters = who.bytes().fold(0, |id: u128, byte| (id << 8) | u128::from(byte));
        let id = SessionId::new(uuid::Uuid::from_u128(letters));
        self.cast.insert(id, who.to_owned());
        id
    }

    fn reply(&self, reply: &Reply) -> String {
        match reply {
            Reply::SessionOpened { ttl, created: true } => format!("opened, ttl {}", ttl.get()),
            Reply::SessionOpened { ttl, created: false } => format!("was open already, ttl {}", ttl.get()),
            Reply::KeptAlive { ttl, broken } if broken.is_empty() => format!("alive for {}", ttl.get()),
            Reply::KeptAlive { ttl, broken } => {
                let broken: Vec<String> = broken.iter().map(AcquireId::to_string).collect();
                format!("alive for {}, but broken: {}", ttl.get(), broken.join(", "))
            }
            Reply::SessionClosed => "closed".into(),
            Reply::Acquire(answer) => answer_text(answer),
            Reply::Released => "released".into(),
            Reply::Broken {
                session_id,
                acquire_id,
                names,
            } => {
                format!("broken: {names} of {}/{acquire_id}", self.cast[session_id])
            }
            Reply::Expired { sessions, waits } => format!("{sessions} sessions and {waits} waits are over"),
            Reply::TokenFloor { floor } => format!("tokens go on above {floor}"),
            Reply::Refused(refusal) => format!("refused: {refusal}"),
        }
    }

    fn event(&self, event: &Event) -> String {
        let who = |session: &SessionId, id: &AcquireId| format!("{}/{id}", self.cast[session]);
        match event {
            Event::SessionOpened { session_id, .. } => format!("{} is here", self.cast[session_id]),
            Event::SessionClosed {
                session_id,
                reason: SessionEnd::Closed,
            } => {
                format!("{} has left", self.cast[session_id])
            }
            Event::SessionClosed {
                session_id,
                reason: SessionEnd::Expired,
            } => {
                format!("{} is dead", self.cast[session_id])
            }
            Event::Queued {
                session_id,
                acquire_id,
                names,
            } => {
                format!("{} waits for {names}", who(session_id, acquire_id))
            }
            Event::Granted {
                session_id,
                acquire_id,
                fencing_token,
                names,
            } => {
                format!(
                    "{} holds {names} under token {fencing_token}",
                    who(session_id, acquire_id)
                )
            }
            Event::Released {
                session_id,
                acquire_id,
                names,
                reason,
                ..
            } => {
                format!(
                    "{} holds {names} no longer: {reason:?}",
                    who(session_id, acquire_id)
                )
            }
            Event::WaitEnded {
                session_id,
                acquire_id,
                names,
                reason,
            } => {
                format!(
                    "{} waits for {names} no longer: {reason:?}",
                    who(session_id, acquire_id)
                )
            }
        }
    }

    fn look(&mut self) {
        let Counts {
            sessions,
            locks,
            holders,
            waiters,
            acquisitions,
        } = self.state.counts();
        self.say(&format!(
            "at {}, last token {}",
            self.state.now(),
            self.state.last_token()
        ));
        self.say(&format!(
            "{sessions} sessions, {locks} locks, {holders} holders, {waiters} waiters, {acquisitions} remembered"
        ));
        if let Some(deadline) = self.state.next_deadline() {
            self.say(&format!("something ends at {deadline} at the earliest"));
        }
        for lock in self.state.locks("", usize::MAX) {
            let holder = lock.holder.map_or("held by nobody yet".into(), |holder| {
                let HolderView {
                    label,
                    acquire_id,
                    fencing_token,
                    held_ms,
                    ..
                } = holder;
                format!("held by {label}/{acquire_id} under token {fencing_token} for {held_ms} ms")
            });
            let waiters = lock
                .waiters
                .iter()
                .map(|w| format!(", then {}/{}", w.label, w.acquire_id));
            self.say(&format!("{}: {holder}{}", lock.name, waiters.collect::<String>()));
        }
    }

    fn say(&mut self, text: &str) {
        writeln!(self.trace, "    {text}").unwrap();
    }
}

fn answer_text(answer: &AcquireAnswer) -> String {
    match answer {
        AcquireAnswer::Granted { fencing_token, names } => format!("granted: {names}, token {fencing_token}"),
        AcquireAnswer::Queued => "in line".into(),
        AcquireAnswer::Held => "held by somebody else".into(),
        AcquireAnswer::TimedOut => "waited too long".into(),
        AcquireAnswer::Abandoned => "abandoned".into(),
        AcquireAnswer::Released => "released".into(),
        AcquireAnswer::Broken => "broken".into(),
    }
}
