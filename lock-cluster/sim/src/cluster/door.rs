//! A member's front door: what its HTTP API offers, without the HTTP.

use lock_core::{AcquireId, Command, Label, LockName, LockNames, LockView, Reply, SessionId, TtlMs, WaitMs};
use lock_node::service::{Acquired, ServiceError};

use lock_node::LockService;

use crate::runtime::SimRt;

/// What clients ask.
#[derive(Clone, Debug)]
pub enum Request {
    /// `PUT /v1/sessions/{id}`
    Open(SessionId, TtlMs),
    /// `POST /v1/sessions/{id}/keep-alive`
    KeepAlive(SessionId, Option<AcquireId>),
    /// `DELETE /v1/sessions/{id}`
    Close(SessionId),
    /// `POST /v1/sessions/{id}/acquisitions`
    Acquire(SessionId, AcquireId, LockNames, WaitMs),
    /// `DELETE /v1/sessions/{id}/acquisitions/{acquire_id}`
    Release(SessionId, AcquireId),
    /// `GET /v1/locks/{name}`
    Look(LockName),
    /// `POST /v1/locks/{name}/break`
    Break(LockName, lock_core::FencingToken),
}

/// What they are told.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To everything else.
    Done(Reply),
    /// To an acquire.
    Acquired(Acquired),
    /// To a look; `None`: nobody holds it or waits for it.
    Seen(Option<LockView>),
}

/// An answer, or why there is none.
pub type Answered = Result<Answer, ServiceError>;

/// Serves one request; dropping the future is what a lost connection does.
pub(super) async fn serve(service: LockService<SimRt>, request: Request) -> Answered {
    let command = match request {
        Request::Acquire(session_id, acquire_id, names, wait) => {
            let acquired = service.acquire(session_id, acquire_id, names, wait).await?;
            return Ok(Answer::Acquired(acquired));
        }
        Request::Look(name) => {
            let seen = service.read(move |state| state.lock(name.as_str())).await?;
            return Ok(Answer::Seen(seen));
        }
        Request::Open(session_id, ttl) => Command::OpenSession {
            session_id,
            ttl,
            label: Label::default(),
        },
        Request::KeepAlive(session_id, acknowledged) => Command::KeepAlive {
            session_id,
            acknowledged,
        },
        Request::Close(session_id) => Command::CloseSession { session_id },
        Request::Release(session_id, acquire_id) => Command::Release {
            session_id,
            acquire_id,
        },
        Request::Break(name, fencing_token) => Command::Break { name, fencing_token },
    };
    service.propose(command).await.map(Answer::Done)
}
