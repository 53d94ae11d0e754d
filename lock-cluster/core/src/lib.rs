//! The lock service without the service: a pure, deterministic state machine for named locks.
//!
//! # What it is
//!
//! [`LockState::apply`] takes one [`Command`] and the cluster time at which it happens, changes the state,
//! and returns a [`Reply`] for whoever asked and [`Event`]s for whoever watches. There is no clock in
//! here, no chance, no I/O and no async; there is not even a map whose order could differ between two
//! runs. Feed the same commands in the same order to three of these and they are equal, which is all that
//! Raft asks of a state machine, and all that makes a lock service out of a replicated log.
//!
//! ```
//! use lock_core::*;
//!
//! let mut state = LockState::new();
//! let ana = SessionId::new(uuid::Uuid::from_u128(1));
//! let open = Command::OpenSession { session_id: ana, ttl: TtlMs::new(5_000)?, label: Label::parse("ana")? };
//! state.apply(ClusterTime::from_ms(0), open);
//!
//! let acquire = Command::Acquire {
//!     session_id: ana,
//!     acquire_id: AcquireId::new(1),
//!     names: LockNames::parse(&["event/rock", "event/jazz"])?,
//!     wait: WaitMs::ZERO,
//!     delivery: Delivery::new(7),
//! };
//! let first = state.apply(ClusterTime::from_ms(10), acquire.clone()).reply;
//! assert!(matches!(first, Reply::Acquire(AcquireAnswer::Granted { .. })));
//!
//! // The answer got lost, so the client asks again under the same id: it does not wait for itself.
//! assert_eq!(state.apply(ClusterTime::from_ms(900), acquire).reply, first);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rules
//!
//! 1. **A session is a client's liveness.** Everything a client holds or waits for belongs to its session
//!    and goes with it. Only keep-alives (and a repeated open) prolong it.
//! 2. **Time is in the log.** The leader stamps commands; the state's time is the latest stamp seen. Only
//!    [`Command::Expire`] ends anything for being late, and it decides when it is *applied*: a keep-alive
//!    ordered before it wins. The millisecond of a deadline still counts as in time.
//! 3. **First come, first served, per name, in log order.** An acquisition stands in the lines of all its
//!    names and is granted when it is the first in every one, so several names are granted together or not
//!    at all, and never in deadlock. The price: a name can be free and yet refused, because the first in its
//!    line still waits for another. And locks are not reentrant: a second attempt for a name that the same
//!    session holds waits like anybody else's.
//! 4. **The same id, the same answer.** An attempt is known by (session, [`AcquireId`]). Its answer is
//!    remembered until the client acknowledges it or the session ends. A released id stays released.
//! 5. **What was given up cannot come back.** A release or an abandon that overtakes its acquire uses up
//!    the id. An abandon speaks for one [`Delivery`], and the attempt goes with the last of them: a node
//!    that lost its client cannot take away what the client was granted through another connection.
//! 6. **One counter of fencing tokens** for the whole cluster, never reset; it can be raised, so that a cluster
//!    which takes the place of another goes on above it.
//! 7. **A free lock leaves no trace**, and [everything that can be there has a limit](limits).
//!
//! # What it does not do
//!
//! - It does not remember sessions that are over. An open that was delayed until after its session's end
//!   begins a new, empty one under the same id, which nobody keeps alive and time soon ends. A client must
//!   therefore count a session as lost by its own clock, and take a new id for the next.
//! - It does not tell the holder of an expired session that it lost; there is nobody to tell. The holder's
//!   own deadline, and in the end the fencing token, have to.
//! - It does not know whether its node leads. Events are computed everywhere, and acted on where it matters.
//!
//! # Where things are
//!
//! The vocabulary is in [`command`], [`reply`], [`event`], [`id`], [`name`] and [`time`]; the rules are
//! below [`state`], one file for each subject; [`view`] is what readers are shown. All of it serialises with
//! serde in a way that binary encodings can follow (no untagged or flattened shapes).

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
