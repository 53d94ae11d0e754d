//! The gateway over HTTP, on both engines.

mod cards;
mod input;
mod ledger;
mod support;
