//! The test kit, tested.

mod database;
mod program;
