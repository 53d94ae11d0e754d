//! What clients saw, and whether a lock service can have shown it to them.
//!
//! A [`History`] is written by the clients as they go: when they asked, what they were told, from when on they no
//! longer believed to hold. Nothing in it comes from the servers, so it can be checked without trusting them; and
//! nothing in the check knows about simulations, so a history of real processes will do as well. An outcome that
//! nobody was told stays open: the check never concludes anything from silence.
//!
//! [`check`] goes through a history once, in order of time:
//!
//! | what must hold | how it is seen |
//! |---|---|
//! | two never believe to hold the same name at once | a grant is told while another still believes |
//! | tokens only grow | a grant whose asking began after a higher token was told |
//! | one grant, one token | a token told for two attempts, two tokens for one attempt |
//! | the same question, the same answer | what an attempt is told after its first answer |
//! | what was released stays released | a grant told after the release was confirmed |
//! | nobody is ended before their time | "session expired" told to one that still trusts it |
//! | reads are not stale | a look that was begun during somebody's holding, and ended in it, sees another |
//!
//! Two more checks look at the same cluster from other sides. [`book`] reads what only servers know: who stood in line
//! before whom. [`linear`] trusts no rule of this page: it asks whether the answers of one name can be explained at
//! all, by one lock that is used by one client at a time.

pub mod book;
mod check;
pub mod linear;

use std::fmt;

use lock_core::{AcquireId, LockName, LockNames, SessionId};
use serde::{Deserialize, Serialize};

pub use check::check;

/// One attempt of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// Whose.
    pub session: SessionId,
    /// Which.
    pub id: AcquireId,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The end of a UUID is enough to tell the sessions of one history apart.
        let session = self.session.get().simple().to_string();
        write!(f, "{}#{}", &session[session.len() - 6..], self.id)
    }
}

/// A final answer to an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It holds, under this token.
    Granted(u64),
    /// It was not to wait, and did not get it.
    Held,
    /// It waited in vain.
    TimedOut,
    /// It was given up on behalf of the client.
    Abandoned,
    /// It was released.
    Released,
    /// It was broken.
    Broken,
    /// The client has acknowledged it.
    Acknowledged,
}

/// Something that happened to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// It asked for the first time under this attempt.
    Asked(Attempt, LockNames),
    /// It was told how an attempt stands; any number of times for one attempt.
    Told(Attempt, Verdict),
    /// It began to give the attempt up. From here on it does not believe to hold.
    LetGo(Attempt),
    /// The release was confirmed.
    Released(Attempt),
    /// A release was refused: this session never held that.
    NotHeld(Attempt),
    /// It no longer trusts its session: its own clock says that the time is up, it closes it, or it died itself.
    Distrusted(SessionId),
    /// It was told that its session is over.
    Expired(SessionId),
    /// An administrator asks that the holder under this token loses it.
    Breaks(u64),
    /// Somebody (by this number) begins to look who holds a name.
    Looks(u64, LockName),
    /// And sees a holder's token, or nobody.
    Saw(u64, Option<u64>),
}

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// In true time, nanoseconds.
    pub at: u64,
    /// What.
    pub what: What,
}

/// Everything that happened to all clients, in order of time.
pub type History = Vec<Moment>;
