//! What inventory does without being asked: giving back what is owed or out of time, and hosting a member of the
//! lock cluster when told to.

pub(crate) mod member;
pub(crate) mod returns;
