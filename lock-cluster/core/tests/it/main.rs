//! The tests of the state machine: stories to read, a naive model to disagree with, limits to run into.

// A test that cannot go on says so by panicking, in its helpers as well.
#![allow(clippy::unwrap_used)]

mod histories;
mod limits;
mod model;
mod properties;
mod reference;
mod restore;
mod scale;
mod scripts;
mod values;
