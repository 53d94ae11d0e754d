//! What the front door decides without asking anybody.

pub(crate) mod audit;
pub(crate) mod round;
pub(crate) mod route;
pub(crate) mod topology;
