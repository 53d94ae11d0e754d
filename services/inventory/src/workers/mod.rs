//! What inventory does without being asked: giving back what is owed or out of time.

pub(crate) mod returns;
