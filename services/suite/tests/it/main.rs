//! The whole suite, end to end. Nothing is mocked and nothing is called past its HTTP: every test starts the
//! suite on ports of its own, lets people buy, lets things die, and then reads the books.
//!
//! | file | what it shows |
//! |---|---|
//! | [`oversell`] | the same burst, with and without a guard |
//! | [`retry_storm`] | the same purchase several times under one key |
//! | [`last_ticket`] | one seat, fifty buyers, two hundred times |
//! | [`postgres`] | these three on the other engine |
//! | [`crash`] | `kill -9` of everything in the middle of a burst |
//! | [`processes`] | services as separate programs, killed in turn |
//! | [`paused_holder`] | a lock's holder that is stopped for longer than its session lives |
//! | [`carts`] | carts that name the same events in opposite orders |
//! | [`limit`] | one buyer, many purchases, a limit |
//! | [`bad_input`], [`bad_locks`] | what is refused, how, and that nothing happened |
//! | [`keys`] | what an `Idempotency-Key` stands for |
//! | [`lock_token`] | a lock cluster that wants a token of its clients |
//! | [`lifecycle`] | starting again, stopping, not being able to start |
#![allow(clippy::unwrap_used, reason = "in a test a panic is a verdict")]

mod bad_input;
mod bad_locks;
mod carts;
mod crash;
mod keys;
mod last_ticket;
mod lifecycle;
mod limit;
mod lock_token;
mod oversell;
mod paused_holder;
mod postgres;
mod processes;
mod retry_storm;
mod support;
