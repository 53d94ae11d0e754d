//! Checkout as a whole, on a fresh database of each engine and a port of its own.
//!
//! Inventory and billing are played by one small server inside the test ([`world`]), because these tests are about
//! what happens when they are slow, unsure, busy or gone at a chosen moment, and about counting what they did.
//! [`real`] runs against the real ones.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a verdict")]

mod bad_input;
mod buying;
mod cancelling;
mod crash;
mod real;
mod recovery;
mod repeating;
mod section;
mod shop;
mod world;
