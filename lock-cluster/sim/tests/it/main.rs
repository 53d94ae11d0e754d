//! The simulation in CI: seeds, and bugs planted to see them found.

#![allow(clippy::unwrap_used)]

mod pinned;
mod planted;
mod repeat;
mod seam;
mod seeds;
mod stories;
