//! Both engines through the same code.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a verdict")]

mod support;
mod together;
mod transactions;
mod types_and_errors;
