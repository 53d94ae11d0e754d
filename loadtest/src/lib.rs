//! The load test: real buyers against a running suite, counted, judged and written down.
//!
//! `loadtest compare` runs rounds of each strategy and puts them side by side. A round is a fresh event, a burst
//! of buyers released together by [goose](https://book.goose.rs), a retry storm, rest, and the audit over all
//! books. What a round *is* and what it *means* is not decided here: the crate `buyers` holds that, and the
//! front door's `POST /v1/rounds` uses the same code. This crate owns
//!
//! | module | what it does |
//! |---|---|
//! | [`cli`] | the flags, and what `--help` teaches |
//! | [`target`] | the suite that is given, or one started for the run and stopped after it |
//! | [`attack`] | one burst, with goose |
//! | [`compare`] | rounds of strategies, alternating, with progress |
//! | [`machine`] | what machine it ran on, for the report |
//! | [`report`] | the table on the screen, `report.json`, `report.md`, `report.html` with its plots |
//!
//! It leaves out an arrival-rate model: a burst asks "what if everybody comes at once?", which is the question
//! that a lock answers. Latency under a burst is mostly time in line, and is reported as such.

pub mod attack;
pub mod cli;
pub mod compare;
pub mod machine;
pub mod report;
pub mod target;
