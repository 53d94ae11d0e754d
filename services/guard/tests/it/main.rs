//! The strategies as a service uses them.

mod local;
