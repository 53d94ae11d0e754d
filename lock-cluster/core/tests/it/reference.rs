//! What the naive model makes of a random history: the reference that the real state is held against.
//!
//! A step is turned into a command here, with what the model knows: "whoever holds this name" means somebody only
//! while somebody does. So a history stays sensible when it is shrunk.

use lock_core::*;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use crate::histories::{Deed, Step, Timed, limits, openings, step};
use crate::model::Model;

/// All that happened so far, according to the model.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) limits: Limits,
    pub(crate) openings: Vec<Timed>,
    pub(crate) model: Model,
    clock: u64,
    sent: Vec<Command>,
    /// What the last step came to; `None` if it was no command.
    pub(crate) last: Option<Answered>,
}

/// One command, and what it brings.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) at: u64,
    pub(crate) command: Command,
    pub(crate) reply: Reply,
    pub(crate) events: Vec<Event>,
}

impl Past {
    /// Everybody who is to be there is there from the start.
    fn begin(limits: Limits, openings: Vec<Timed>) -> Self {
        let nothing = Self {
            limits,
            model: Model::new(limits),
            clock: 10_000,
            sent: vec![],
            last: None,
            openings: vec![],
        };
        let begun = openings.iter().fold(nothing, Self::take);
        Self { openings, ..begun }
    }

    /// The same before anything happened.
    pub(crate) fn before(&self) -> Self {
        Self::begin(self.limits, vec![])
    }

    pub(crate) fn take(mut self, (moved, step): &Timed) -> Self {
        self.clock = self.clock.saturating_add_signed(*moved);
        self.last = self.meant(step).map(|command| {
            self.sent.push(command.clone());
            let at = self.clock;
            let (reply, events) = self.model.apply(at, &command);
            Answered {
                at,
                command,
                reply,
                events,
            }
        });
        self
    }

    fn meant(&self, step: &Step) -> Option<Command> {
        match step {
            Step::Do(command) => Some(command.clone()),
            Step::Aimed(name, holder, deed) => self.aim(name, *holder, *deed),
            Step::Again(_) if self.sent.is_empty() => None,
            Step::Again(index) => Some(self.sent[index % self.sent.len()].clone()),
            Step::Restore => None,
        }
    }

    /// The command that does this to whoever is there, if anybody is.
    fn aim(&self, name: &LockName, holder: bool, deed: Deed) -> Option<Command> {
        let lock = self.model.locks().into_iter().find(|lock| lock.name == *name)?;
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
}

/// The naive model as `proptest-state-machine` wants it.
pub(crate) struct Reference;

impl ReferenceStateMachine for Reference {
    type State = Past;
    type Transition = Timed;

    fn init_state() -> BoxedStrategy<Past> {
        (limits(), openings())
            .prop_map(|(limits, openings)| Past::begin(limits, openings))
            .boxed()
    }

    fn transitions(_: &Past) -> BoxedStrategy<Timed> {
        step()
    }

    fn apply(past: Past, step: &Timed) -> Past {
        past.take(step)
    }
}
