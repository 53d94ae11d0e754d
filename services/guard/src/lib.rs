//! How a critical section is guarded: the strategies of the laboratory, one file each, behind one trait.
//!
//! A service writes its section once (read, compare, write) and asks [`Guards::enter`] for permission first.
//! What it gets is an [`Entry`], which says two things: that the section may begin now, and by which
//! [`WriteRule`] its write has to go. The rule is all that the section may look at. It never asks *which*
//! strategy is on, so it cannot treat one of them better than another.
//!
//! ```no_run
//! # async fn example(guards: &guard::Guards) -> Result<(), guard::GuardError> {
//! use std::time::Duration;
//! use guard::WriteRule;
//! use ticketing_types::Strategy;
//!
//! let entry = guards.enter(Strategy::Raft, &["event/42".to_owned()], Duration::from_secs(30)).await?;
//! // … read, compare …
//! match entry.rule {
//!     WriteRule::Plain => { /* write what was read minus what is taken */ }
//!     WriteRule::Fenced(_token) => { /* the same … where fencing_token <= $token */ }
//!     WriteRule::CompareVersion => { /* the same … where version = $version_read */ }
//!     WriteRule::Conditional => { /* one update that carries its own condition */ }
//! }
//! entry.leave().await;
//! # Ok(()) }
//! ```
//!
//! | strategy | waits for | rule | right when |
//! |---|---|---|---|
//! | `none` | nothing | `Plain` | never |
//! | `process` | a mutex per name in this instance | `Plain` | there is one instance |
//! | `raft` | the lock cluster | `Fenced` | always: a holder that lost its lock is refused by the row |
//! | `raft-unfenced` | the lock cluster | `Plain` | no holder is ever stopped for longer than its session |
//! | `atomic` | nothing | `Conditional` | always, for sections that fit into one statement |
//! | `optimistic` | nothing | `CompareVersion` | always; under contention much work is done twice ([`Attempts`]) |
//!
//! `row`, `advisory`, `redis`, `etcd` and `consul` are known names that this version answers with
//! [`GuardError::StrategyUnavailable`]. Each will be one more file in `strategy/` and one more line in
//! [`Guards::new`].
//!
//! The crate knows no HTTP and no SQL. A lock is never awaited while a database connection is held: callers
//! enter first and connect afterwards, or a burst of waiters would occupy the whole pool.

mod attempts;
mod entry;
mod error;
mod guards;
mod rule;
mod strategy;

pub use attempts::Attempts;
pub use entry::{Entry, KeepAlivePaused};
pub use error::GuardError;
pub use guards::Guards;
pub use lock_client::ClientConfig;
pub use rule::WriteRule;
