//! Both engines through the same code.

mod support;
mod together;
mod transactions;
mod types_and_errors;
