//! A session's calls as JSON over HTTP, and what the answers mean.

use lock_core::{AcquireId, FencingToken, LockNames, TtlMs};
use lock_pipe::{Call, Done, Problem};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::wire;

/// The answer to a request that was granted.
#[derive(Debug)]
pub(crate) struct Success {
    status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Success {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(unreadable)
    }
}

/// Sends one request and reads its answer: a success, or a problem. The outer error is that there is no answer.
pub(crate) async fn exchange(
    request: RequestBuilder,
    body: Option<&Value>,
) -> Result<Result<Success, Problem>, String> {
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    let exchange = async {
        let response = request.send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        Ok::<_, reqwest::Error>((status, body))
    };
    let (status, body) = exchange.await.map_err(|error| root_cause(&error))?;
    Ok(if status.is_success() {
        let body = body.into();
        Ok(Success { status, body })
    } else {
        Err(wire::problem(status.as_u16(), &body))
    })
}

/// Makes a call over HTTP. The outer error is that there is no answer.
pub(crate) async fn call(
    request: impl Fn(Method, &str) -> RequestBuilder,
    call: &Call,
) -> Result<Result<Done, Problem>, String> {
    let (method, path, body) = spell(call);
    Ok(match exchange(request(method, &path), body.as_ref()).await? {
        Ok(success) => Ok(understand(call, &success)?),
        Err(problem) => Err(problem),
    })
}

fn spell(call: &Call) -> (Method, String, Option<Value>) {
    match call {
        Call::Open {
            session_id,
            ttl,
            label,
        } => {
            let open = wire::OpenSession {
                ttl_ms: ttl.get(),
                label: label.as_str(),
            };
            (
                Method::PUT,
                format!("/v1/sessions/{session_id}"),
                Some(serde_json::json!(open)),
            )
        }
        Call::KeepAlive {
            session_id,
            acknowledged,
        } => {
            let keep_alive = wire::KeepAlive {
                acknowledged: acknowledged.map(AcquireId::get),
            };
            (
                Method::POST,
                format!("/v1/sessions/{session_id}/keep-alive"),
                Some(serde_json::json!(keep_alive)),
            )
        }
        Call::Close { session_id } => (Method::DELETE, format!("/v1/sessions/{session_id}"), None),
        Call::Acquire {
            session_id,
            acquire_id,
            names,
            wait,
        } => {
            let acquire = wire::Acquire {
                acquire_id: acquire_id.get(),
                names: names.iter().map(|name| name.as_str()).collect(),
                wait_ms: wait.get(),
            };
            (
                Method::POST,
                format!("/v1/sessions/{session_id}/acquisitions"),
                Some(serde_json::json!(acquire)),
            )
        }
        Call::Release {
            session_id,
            acquire_id,
        } => (
            Method::DELETE,
            format!("/v1/sessions/{session_id}/acquisitions/{acquire_id}"),
            None,
        ),
    }
}

/// What a success says.
fn understand(call: &Call, success: &Success) -> Result<Done, String> {
    Ok(match call {
        Call::Open { .. } => Done::Opened {
            ttl: ttl(success.read::<wire::SessionAlive>()?.ttl_ms)?,
            created: success.status == StatusCode::CREATED,
        },
        Call::KeepAlive { .. } => {
            let alive = success.read::<wire::SessionAlive>()?;
            Done::KeptAlive {
                ttl: ttl(alive.ttl_ms)?,
                broken: alive.broken.into_iter().map(AcquireId::new).collect(),
            }
        }
        Call::Close { .. } => Done::Closed,
        Call::Acquire { .. } => {
            let granted = success.read::<wire::Granted>()?;
            Done::Granted {
                fencing_token: FencingToken::new(granted.fencing_token),
                names: LockNames::parse(&granted.names).map_err(unreadable)?,
            }
        }
        Call::Release { .. } => Done::Released,
    })
}

fn ttl(ttl_ms: u64) -> Result<TtlMs, String> {
    TtlMs::new(ttl_ms).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("its answer could not be read: {error}")
}

/// reqwest's own message repeats the URL; the cause at the end of the chain says what went wrong.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
