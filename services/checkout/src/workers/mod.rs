//! What checkout does without being asked.
//!
//! | worker | what it does |
//! |---|---|
//! | [`recovery`] | finishes purchases whose driver is gone |
//! | [`renewal`] | says that the drivers of this process are alive |

pub mod recovery;
pub mod renewal;
