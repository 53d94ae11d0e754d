//! The replicated lock state: a pure, deterministic state machine.

pub mod command;
pub mod event;
pub mod id;
pub mod limits;
pub mod name;
pub mod reply;
pub mod state;
pub mod time;
pub mod view;

pub use command::Command;
pub use event::{Event, ReleaseReason, SessionEnd, WaitEnd};
pub use id::{AcquireId, Delivery, FencingToken, SessionId};
pub use limits::Limits;
pub use name::{Label, LockName, LockNames, NameError};
pub use reply::{AcquireAnswer, Refusal, Reply};
pub use state::{Applied, LockState, RestoreError, Snapshot};
pub use time::{ClusterTime, OutOfRange, TtlMs, WaitMs};
pub use view::{Counts, HolderView, LockView, SessionView, WaiterView};
