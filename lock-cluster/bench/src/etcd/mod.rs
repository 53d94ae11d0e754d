//! As much of etcd's client as a lock needs.
//!
//! No code is generated, because generating it needs `protoc`, which a bare machine lacks: [`messages`] writes the
//! dozen messages out, [`calls`] makes the calls. [`lock_service`] and [`recipe`] are the two ways of locking with
//! etcd, over a [`Session`](session::Session), which is a lease that is kept alive.

pub(crate) mod calls;
pub(crate) mod lock_service;
mod messages;
pub(crate) mod recipe;
pub(crate) mod session;
