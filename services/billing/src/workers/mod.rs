//! What billing does without being asked.

pub(crate) mod settle;
