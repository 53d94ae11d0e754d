//! The simulation in CI: seeds, the checks themselves, and bugs planted to see them found.

mod checks;
mod planted;
mod repeat;
mod seeds;
