//! The checker on trial: histories broken by hand, one for each rule, and such as only look broken.

#![allow(clippy::unwrap_used)]

mod checks;
mod linear;
