//! `optimistic`: no lock. The write compares the version that was read; who loses reads again
//! ([`crate::Attempts`]).

use std::time::Duration;

use super::{Entering, Guard, at_once};
use crate::WriteRule;

pub(crate) struct Optimistic;

impl Guard for Optimistic {
    fn enter<'a>(&'a self, _names: &'a [String], _wait: Duration) -> Entering<'a> {
        at_once(WriteRule::CompareVersion)
    }
}
