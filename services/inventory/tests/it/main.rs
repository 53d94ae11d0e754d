//! Inventory over real HTTP, on both databases.

mod bad_input;
mod endings;
mod events;
mod holds;
mod races;
mod raft;
mod shop;
