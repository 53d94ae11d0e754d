//! The test kit, tested.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a verdict")]

mod database;
mod program;
