//! From what happened to clients to what was done to one name, with a call and a return.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{LockName, SessionId};

use super::lock::Deed;
use crate::{Attempt, Moment, Verdict, What};

/// Something done to a name. Steps are places in the history.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) called: usize,
    /// `None`: it may happen at any time from then on, or never.
    pub(super) returned: Option<usize>,
    pub(super) deed: Deed,
}

impl Operation {
    /// Before everything else of a window: this token had been given.
    pub(super) fn given(token: u64) -> Self {
        known(0, 0, Deed::Given(token))
    }

    /// Under which token it got the lock.
    pub(super) fn granted(&self) -> Option<u64> {
        match self.deed {
            Deed::Acquired(_, token) => Some(token),
            _ => None,
        }
    }

    /// Whose holding it is about, if its token is known.
    pub(super) fn token(&self) -> Option<u64> {
        match self.deed {
            Deed::Acquired(_, token) | Deed::Released(_, token) | Deed::MayBreak(token) => Some(token),
            Deed::MayAcquire(_, token) | Deed::MayEnd(_, token) => token,
            Deed::Given(_) | Deed::Closed(_) | Deed::FoundHeld | Deed::SeenHeld(..) | Deed::SeenFree => None,
        }
    }

    /// Whether it is about a holding that was over when `token` was granted.
    pub(super) fn is_of_one_before(&self, token: Option<u64>) -> bool {
        self.token().is_some_and(|own| Some(own) < token)
    }

    /// Whether it may as well not have happened.
    pub(super) fn is_open(&self) -> bool {
        matches!(
            self.deed,
            Deed::MayAcquire(..) | Deed::MayEnd(..) | Deed::MayBreak(_)
        )
    }

    /// Whether it changes nothing.
    pub(super) fn is_look(&self) -> bool {
        matches!(self.deed, Deed::SeenHeld(..) | Deed::SeenFree | Deed::FoundHeld)
    }

    /// The same for somebody who does not see its return. `None` if it then says nothing.
    pub(super) fn opened(self) -> Option<Self> {
        let deed = match self.deed {
            Deed::Acquired(attempt, token) => Deed::MayAcquire(attempt, Some(token)),
            Deed::Released(attempt, token) => Deed::MayEnd(attempt, Some(token)),
            Deed::Closed(attempt) => Deed::MayEnd(attempt, None),
            deed @ (Deed::MayAcquire(..) | Deed::MayEnd(..) | Deed::MayBreak(_)) => deed,
            Deed::Given(_) | Deed::SeenHeld(..) | Deed::SeenFree | Deed::FoundHeld => return None,
        };
        Some(Self {
            returned: None,
            deed,
            ..self
        })
    }
}

/// An attempt, as it comes out of the history.
struct Tried {
    attempt: Attempt,
    asked: usize,
    /// The first answer.
    told: Option<(usize, Verdict)>,
    let_go: Option<usize>,
    released: Option<usize>,
    /// The cluster said that it never held, and never will.
    not_held: bool,
}

/// All that was done to `name`, in the order of calls.
pub(super) fn operations(history: &[Moment], name: &LockName) -> Vec<Operation> {
    let mut tried: BTreeMap<Attempt, Tried> = BTreeMap::new();
    let mut distrusted: BTreeMap<SessionId, usize> = BTreeMap::new();
    let mut broken: BTreeSet<u64> = BTreeSet::new();
    let mut looks: BTreeMap<u64, usize> = BTreeMap::new();
    // Somebody who wants several names may stand in front of one that nobody holds.
    let mut held_is_held = true;
    let mut seen_at = Vec::new();
    let mut done = Vec::new();
    for (step, moment) in history.iter().enumerate() {
        match &moment.what {
            What::Asked(attempt, names) if names.iter().any(|asked| asked == name) => {
                held_is_held &= names.iter().count() == 1;
                let (attempt, asked) = (*attempt, step);
                let new = Tried {
                    attempt,
                    asked,
                    told: None,
                    let_go: None,
                    released: None,
                    not_held: false,
                };
                tried.insert(attempt, new);
            }
            What::Told(attempt, verdict) => {
                if let Some(tried) = tried.get_mut(attempt) {
                    tried.told.get_or_insert((step, *verdict));
                }
            }
            What::LetGo(attempt) => {
                if let Some(tried) = tried.get_mut(attempt) {
                    tried.let_go.get_or_insert(step);
                }
            }
            What::Released(attempt) => {
                if let Some(tried) = tried.get_mut(attempt) {
                    tried.released.get_or_insert(step);
                }
            }
            What::NotHeld(attempt) => {
                if let Some(tried) = tried.get_mut(attempt) {
                    tried.not_held = true;
                }
            }
            What::Distrusted(session) => drop(distrusted.entry(*session).or_insert(step)),
            What::Breaks(token) => {
                broken.insert(*token);
                done.push(open(step, Deed::MayBreak(*token)));
            }
            What::Looks(look, looked) if looked == name => drop(looks.insert(*look, step)),
            What::Saw(look, seen) => {
                if let Some(called) = looks.remove(look) {
                    seen_at.push((called, step, *seen));
                }
            }
            What::Asked(..) | What::Looks(..) | What::Expired(_) => {}
        }
    }
    let mut told_to = BTreeMap::new();
    for tried in tried.values() {
        if let Some((_, Verdict::Granted(token))) = tried.told {
            told_to.insert(token, tried.attempt);
        }
        let gone = distrusted.get(&tried.attempt.session).copied();
        done.extend(tried.operations(gone, &broken, held_is_held));
    }
    for (called, returned, seen) in seen_at {
        let by = |token| told_to.get(&token).copied();
        let deed = seen.map_or(Deed::SeenFree, |token| Deed::SeenHeld(by(token), token));
        done.push(known(called, returned, deed));
    }
    done.sort_by_key(|operation| operation.called);
    done
}

impl Tried {
    fn operations(
        &self,
        distrusted: Option<usize>,
        broken: &BTreeSet<u64>,
        held_is_held: bool,
    ) -> Vec<Operation> {
        let Self { attempt, asked, .. } = *self;
        match self.told {
            Some((told, Verdict::Granted(token))) => {
                let got = known(asked, told, Deed::Acquired(attempt, token));
                let sure = distrusted.is_none() && !broken.contains(&token);
                let end = match (self.let_go, self.released) {
                    (Some(called), Some(returned)) if sure => {
                        Some(known(called, returned, Deed::Released(attempt, token)))
                    }
                    // From the first moment at which anything may have ended it.
                    (let_go, released) => {
                        let called = [let_go, distrusted].into_iter().flatten().min();
                        called.map(|called| Operation {
                            called,
                            returned: released,
                            deed: Deed::MayEnd(attempt, Some(token)),
                        })
                    }
                };
                [Some(got), end].into_iter().flatten().collect()
            }
            Some((told, Verdict::Held)) if held_is_held => vec![known(asked, told, Deed::FoundHeld)],
            // Who waited in vain never held, and how long it stood in front nobody else can tell.
            Some((_, Verdict::Held | Verdict::TimedOut)) => Vec::new(),
            _ if self.not_held => Vec::new(),
            // It may have held without knowing. After a confirmed release it does not, and will not.
            Some((_, Verdict::Abandoned | Verdict::Released | Verdict::Broken | Verdict::Acknowledged))
            | None => {
                let end = match self.released {
                    Some(returned) => known(asked, returned, Deed::Closed(attempt)),
                    None => open(asked, Deed::MayEnd(attempt, None)),
                };
                let got = Operation {
                    called: asked,
                    returned: self.released,
                    deed: Deed::MayAcquire(attempt, None),
                };
                vec![got, end]
            }
        }
    }
}

fn known(called: usize, returned: usize, deed: Deed) -> Operation {
    Operation {
        called,
        returned: Some(returned),
        deed,
    }
}

fn open(called: usize, deed: Deed) -> Operation {
    Operation {
        called,
        returned: None,
        deed,
    }
}
