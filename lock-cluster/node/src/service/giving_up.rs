//! What happens to an acquire whose caller went away.
//!
//! A client that closes its connection, a handler that is cancelled, a timeout around the call: in Rust all of them
//! are one thing, the future is dropped at some `.await`. At that moment the command may not have been proposed, be
//! on its way, stand in line, or have been granted a microsecond ago. One answer fits all: an `Abandon` behind it
//! in the same queue. It leaves the line, or releases what was granted but never handed over; and because it names
//! the *delivery*, it does nothing to a client that merely changed connections and has asked again.

use std::sync::Arc;

use lock_core::{AcquireId, Command, Delivery, SessionId};

use super::Replica;
use super::batcher::Queue;

/// Gives one delivery of an acquire up when dropped, unless disarmed.
pub(super) struct GiveUpOnDrop {
    replica: Arc<Replica>,
    queue: Arc<Queue>,
    session_id: SessionId,
    acquire_id: AcquireId,
    delivery: Delivery,
    armed: bool,
}

impl GiveUpOnDrop {
    pub(super) fn new(
        replica: &Arc<Replica>,
        queue: &Arc<Queue>,
        session_id: SessionId,
        acquire_id: AcquireId,
        delivery: Delivery,
    ) -> Self {
        Self {
            replica: replica.clone(),
            queue: queue.clone(),
            session_id,
            acquire_id,
            delivery,
            armed: true,
        }
    }

    /// The caller was told, or will ask again.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for GiveUpOnDrop {
    fn drop(&mut self) {
        let Self {
            session_id,
            acquire_id,
            delivery,
            ..
        } = *self;
        self.replica.forget(session_id, acquire_id, delivery);
        if self.armed {
            self.queue.tell(Command::Abandon {
                session_id,
                acquire_id,
                delivery,
            });
        }
    }
}
