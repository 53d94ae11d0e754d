//! The five calls of a session, whichever way they came in: as JSON (`sessions.rs`) or over a pipe (`pipe/`).
//!
//! This is the one place where a reply of the replicated state becomes an answer to a client. Both ways say the same
//! because both ask here.

use std::time::Duration;

use lock_core::{AcquireAnswer, AcquireId, Command, LockNames, Refusal, Reply, SessionId, WaitMs};
use lock_pipe::{Call, Done};
use service_kit::Problem;

use super::Api;
use super::error::{not_done, not_granted, refused};

impl Api {
    /// Does what was asked, or says why not. Dropping the future of an acquire gives it up.
    pub(super) async fn carry_out(&self, call: Call) -> Result<Done, Problem> {
        match call {
            Call::Open {
                session_id,
                ttl,
                label,
            } => {
                let open = Command::OpenSession {
                    session_id,
                    ttl,
                    label,
                };
                match self.service.propose(open).await? {
                    Reply::SessionOpened { ttl, created } => Ok(Done::Opened { ttl, created }),
                    other => Err(not_done(other)),
                }
            }
            Call::KeepAlive {
                session_id,
                acknowledged,
            } => {
                let keep_alive = Command::KeepAlive {
                    session_id,
                    acknowledged,
                };
                match self.service.propose(keep_alive).await? {
                    Reply::KeptAlive { ttl, broken } => Ok(Done::KeptAlive { ttl, broken }),
                    other => Err(not_done(other)),
                }
            }
            Call::Close { session_id } => {
                match self.service.propose(Command::CloseSession { session_id }).await? {
                    Reply::SessionClosed => Ok(Done::Closed),
                    other => Err(not_done(other)),
                }
            }
            Call::Acquire {
                session_id,
                acquire_id,
                names,
                wait,
            } => self.acquire(session_id, acquire_id, names, wait).await,
            Call::Release {
                session_id,
                acquire_id,
            } => {
                let release = Command::Release {
                    session_id,
                    acquire_id,
                };
                match self.service.propose(release).await? {
                    // The client said that it is done with this id, and asks to be done with it: so it is.
                    Reply::Released | Reply::Refused(Refusal::Acknowledged) => Ok(Done::Released),
                    other => Err(not_done(other)),
                }
            }
        }
    }

    async fn acquire(
        &self,
        session_id: SessionId,
        acquire_id: AcquireId,
        names: LockNames,
        wait: WaitMs,
    ) -> Result<Done, Problem> {
        // Held while waiting and no longer; see the module `http` on why waits have a bound of their own.
        let Ok(_waiting) = self.waiting.try_acquire() else {
            let later = Duration::from_secs(1);
            return Err(Problem::busy("overloaded", later).detail("too many acquires wait at this node"));
        };
        let acquired = self.service.acquire(session_id, acquire_id, names, wait).await?;
        match acquired.map_err(refused)? {
            AcquireAnswer::Granted { fencing_token, names } => Ok(Done::Granted { fencing_token, names }),
            answer => Err(not_granted(&answer)),
        }
    }
}
