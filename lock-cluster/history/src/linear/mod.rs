//! Can what was seen of one lock be explained at all?
//!
//! A history is *linearizable* when every operation can be given one instant between its call and its return, such
//! that all of them, carried out one after another at those instants, give the answers that were seen. Nothing else is
//! asked here, and no rule is written down but what a lock with tokens does when a single client uses it
//! (`lock.rs`); the search for the instants is that of a published crate (`todc-utils`: the algorithm of Wing and Gong
//! with Lowe's memory). So this check shares no reasoning with the one-pass check beside it, and each guards the other.
//!
//! * Linearizability is local (Herlihy and Wing 1990): names are looked at one by one. An acquisition of several names
//!   is one operation on each; that they come together is for the one-pass check and the book to see.
//! * An outcome that nobody knows may have happened at any time from its call to the end, or never.
//! * The search is exponential in what is open at a time, so it is done in windows of [`KNOWN_MAX`] operations. A
//!   window that does not begin at the beginning takes any state to begin with: it sees less, and never too much. A
//!   window with more than [`OPEN_MAX`] open outcomes is passed over, and counted.

mod lock;
mod operation;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lock_core::LockName;
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as Actions};

use self::lock::{Begins, Lock};
use self::operation::{Operation, operations};
use crate::{Moment, What};

/// Operations with a known outcome in one window.
pub const KNOWN_MAX: usize = 24;
/// Operations with an open outcome in one window.
pub const OPEN_MAX: usize = 16;

/// What a check has found, and how much it has looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Windows that no order explains.
    pub violations: Vec<String>,
    /// Windows that were searched.
    pub searched: usize,
    /// Windows that were passed over: too much in them was open.
    pub passed_over: usize,
}

/// Looks at every name of a history.
pub fn check(history: &[Moment]) -> Found {
    let mut names = BTreeSet::new();
    for moment in history {
        match &moment.what {
            What::Asked(_, asked) => names.extend(asked),
            What::Looks(_, name) => drop(names.insert(name)),
            _ => {}
        }
    }
    let mut found = Found::default();
    for name in names {
        check_name(name, &operations(history, name), &mut found);
    }
    found
}

fn check_name(name: &LockName, all: &[Operation], found: &mut Found) {
    let mut returns: Vec<usize> = all.iter().filter_map(|operation| operation.returned).collect();
    returns.sort_unstable();
    let mut after = None;
    for chunk in returns.chunks(KNOWN_MAX) {
        let upto = chunk[chunk.len() - 1];
        let after = after.replace(upto);
        let window = window(all, after, upto);
        if window.is_empty() {
            continue; // Nothing but looks that began before it.
        }
        let open = window.iter().filter(|operation| operation.returned.is_none());
        if open.count() > OPEN_MAX {
            found.passed_over += 1;
        } else {
            found.searched += 1;
            let explained = match after {
                None => is_explained::<lock::FromTheBeginning>(&window),
                Some(_) => is_explained::<lock::FromAnywhere>(&window),
            };
            if !explained {
                found.violations.push(tell(name, &window));
            }
        }
    }
}

/// What happened to a name between two steps, as far as it can be said without knowing the rest.
fn window(all: &[Operation], after: Option<usize>, upto: usize) -> Vec<Operation> {
    let before = |step: usize| after.is_some_and(|after| step <= after);
    // Somebody was told this token before the window. Lower ones were held, and given up, before it was granted: what is
    // told of them late is old news. Whoever *asks* after that gets a higher one.
    let gone = all
        .iter()
        .filter(|operation| operation.returned.is_some_and(before))
        .filter_map(Operation::granted)
        .max();
    let cut = |operation: &Operation| match operation.returned {
        Some(returned) if before(returned) => None,
        _ if operation.is_of_one_before(gone) && (before(operation.called) || operation.is_open()) => None,
        // It may have seen what was there before the window.
        Some(_) if before(operation.called) && operation.is_look() => None,
        Some(returned) if returned > upto => operation.clone().opened(),
        Some(_) => Some(operation.clone()),
        None => Some(operation.clone()),
    };
    let given = gone.map(Operation::given);
    let within = all
        .iter()
        .filter(|operation| operation.called < upto)
        .filter_map(cut);
    given.into_iter().chain(within).collect()
}

fn is_explained<B: Begins>(window: &[Operation]) -> bool {
    // Each operation is a process of its own. Returns of open ones come after everything else.
    let mut steps = Vec::new();
    for (process, operation) in window.iter().enumerate() {
        let deed = operation.deed;
        steps.push((operation.called, process, Action::Call(deed)));
        steps.push((
            operation.returned.unwrap_or(usize::MAX),
            process,
            Action::Response(deed),
        ));
    }
    steps.sort_by_key(|(step, ..)| *step);
    let actions = steps.into_iter().map(|(_, process, action)| (process, action));
    WGLChecker::<Lock<B>>::is_linearizable(Actions::from_actions(actions.collect()))
}

fn tell(name: &LockName, window: &[Operation]) -> String {
    let mut told = format!("no order explains what was seen of {name}:");
    for operation in window {
        let returned = operation.returned.map_or("…".to_owned(), |step| step.to_string());
        // Writing to a String cannot fail.
        let _ = write!(told, " [{}–{returned} {:?}]", operation.called, operation.deed);
    }
    told
}
