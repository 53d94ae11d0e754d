//! What every service has in common and none should think about: how it answers, how it calls, how it starts
//! and stops. No SQL, no business words beyond the headers that travel with a request.
//!
//! | module | one idea |
//! |---|---|
//! | [`problem`] | every error is RFC 9457 `application/problem+json` |
//! | [`extract`] | bodies, paths and queries that refuse with a pointer to what is wrong |
//! | [`idempotency`] | the `Idempotency-Key` header |
//! | [`context`] | what travels with a request: strategy, payment key, fault, trace |
//! | [`peer`] | a call to another service has three outcomes: done, definitely not, **unknown** |
//! | [`faults`] | named places where things can be made to go wrong |
//! | [`finish`](mod@finish) | turns a service's routes into a whole service |
//! | [`health`] | `/healthz` and `/readyz` |
//! | [`server`] | bind, serve, drain; [`Seats`]: who may stay when a port is full |
//! | [`metrics`] | Prometheus |
//! | [`secret`] | what is read from files or the environment and never shown |
//! | [`machine`](mod@machine) | the machine, for reports of measurements |
//! | [`telemetry`], [`shutdown`], [`limits`], [`args`], [`program`] | the first and the last second of a process |
//!
//! A service's `start` is then five lines:
//!
//! ```no_run
//! # use service_kit::{*, finish::ServiceInfo};
//! # use tokio_util::sync::CancellationToken;
//! # async fn start(shutdown: CancellationToken) -> anyhow::Result<Running> {
//! # let openapi = utoipa::openapi::OpenApi::default();
//! let faults = Faults::new(true, &["inventory.critical-section"]);
//! let metrics = Metrics::new("inventory", "inventory-1");
//! let readiness = Readiness::new().check("database", || async { Ok(()) });
//! let routes = axum::Router::new(); // .route(…).with_state(state)
//! let router = finish(routes, ServiceInfo::new("inventory", "inventory-1", openapi), readiness, metrics, faults);
//! Ok(serve(bind("127.0.0.1:8201".parse()?)?, router, shutdown))
//! # }
//! ```

pub mod args;
mod board;
pub mod context;
pub mod extract;
pub mod faults;
pub mod finish;
pub mod health;
pub mod idempotency;
pub mod limits;
pub mod machine;
pub mod metrics;
mod outcome;
pub mod peer;
mod ports;
pub mod problem;
pub mod program;
mod rejection;
pub mod seats;
pub mod secret;
pub mod server;
pub mod shutdown;
pub mod telemetry;

pub use args::{CommonArgs, LockArgs, LogFormat};
pub use context::CallContext;
pub use extract::{ApiJson, ApiPath, ApiQuery};
pub use faults::Faults;
pub use finish::{ServiceInfo, finish};
pub use health::Readiness;
pub use idempotency::IdempotencyKey;
pub use machine::Machine;
pub use metrics::Metrics;
pub use peer::{Answer, CallError, Peer, http_client};
pub use ports::free_ports;
pub use problem::{FieldError, Problem};
pub use seats::{Seat, Seats};
pub use secret::Secret;
pub use server::{Running, Starting, bind, serve};
