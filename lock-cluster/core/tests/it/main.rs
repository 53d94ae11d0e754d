//! The tests of the state machine: stories to read, a naive model to disagree with, limits to run into.

mod limits;
mod model;
mod properties;
mod scale;
mod scripts;
mod values;
