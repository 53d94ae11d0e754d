//! Real processes under real faults: runs of the whole suite of faults, and one story for each promise that time or a
//! signal could break.
//!
//! | file | promise |
//! |---|---|
//! | `runs` | seeds find nothing, and planted bugs are found |
//! | `waiting` | a waiter whose session dies hears of it, and holds nobody up |
//! | `frozen_leader` | a leader that was stopped expires nobody, and does not answer with yesterday's holder |
//! | `elections` | elections cost no live session its life, and give no dead one a new one |
//! | `wall_clock` | wall clocks do not matter |
//! | `memory` | whoever stops reading grows nobody's memory |
//! | `program` | the program says what it found, and a run that shows nothing is void |
//! | `client_death` | a client that is killed between commit and answer leaves nothing |
//!
//! Bounds of seconds are asserted as they are promised, plus what the machine itself took meanwhile: see `lateness`.

#![allow(clippy::unwrap_used)]

mod client_death;
mod elections;
mod frozen_leader;
mod lateness;
mod memory;
mod program;
mod raw;
mod runs;
mod waiting;
mod wall_clock;
