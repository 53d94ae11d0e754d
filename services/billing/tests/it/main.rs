//! Billing over HTTP, two instances over one database, with a real gateway behind it.

mod cards;
mod input;
mod lifecycle;
mod race;
mod refunds;
mod settle;
mod support;
