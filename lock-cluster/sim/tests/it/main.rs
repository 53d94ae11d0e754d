//! The simulation in CI: seeds, the checks themselves, and bugs planted to see them found.

#![allow(clippy::unwrap_used)]

mod checks;
mod pinned;
mod planted;
mod repeat;
mod seam;
mod seeds;
