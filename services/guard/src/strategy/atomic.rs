//! `atomic`: no lock. The write is one statement that carries its condition, and the database's row lock does
//! the rest. The cheapest right answer wherever a decision fits into a single statement.

use std::time::Duration;

use super::{Entering, Guard, at_once};
use crate::WriteRule;

pub(crate) struct Atomic;

impl Guard for Atomic {
    fn enter<'a>(&'a self, _names: &'a [String], _wait: Duration) -> Entering<'a> {
        at_once(WriteRule::Conditional)
    }
}
