//! The strategies as a service uses them.

mod cluster;
mod local;
