//! What goes on without being asked: looking after the instances, watching the locks, running rounds.

pub(crate) mod prober;
pub(crate) mod rounds;
