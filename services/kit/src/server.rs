//! Bind, serve, drain.
//!
//! A loop of our own instead of `axum::serve`, for one reason: the end. When the shutdown token falls, no new
//! connection is taken, idle ones close at once, requests in flight may finish, and after [`DRAIN`] whatever is
//! left (a client that reads a stream and never stops) is cut. `axum::serve` would wait for it for ever, and
//! leave its connection tasks behind when given up on; here they belong to a `JoinSet` and die with it.
//!
//! And for a second: a port has so many seats (`seats`), and a connection that says nothing loses its own to one that
//! has something to ask. What a connection may take its time for has a bound anyway: a head 75 s, a body 10 s
//! (`extract`), an answer that the other end does not take `UNREAD_MAX`.
//!
//! HTTP/1.1 only: inside the suite connections are kept alive and many, and a lost connection then loses one
//! request, not hundreds.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Context as _;
use axum::{Router, body::Body};
use bytes::Bytes;
use futures::future::BoxFuture;
use hyper::{
    Request,
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::{
    limits,
    seats::{Seat, Seats},
};

/// How long requests in flight may go on after the shutdown token fell. The whole suite stops within 5 s.
pub const DRAIN: Duration = Duration::from_secs(4);
/// Connections waiting to be accepted: a burst of a thousand buyers arrives at once.
const BACKLOG: u32 = 4096;
/// How long a connection may stay silent between two requests. Longer than any client of ours keeps one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// How long an answer may lie about that the other end does not take, or does not acknowledge.
const UNREAD_MAX: Duration = Duration::from_secs(30);

/// Takes an address, or says which one could not be had.
pub fn bind(addr: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let socket = if addr.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?; // connections of the run before may still linger
        socket.bind(addr)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow::anyhow!("cannot listen on {addr}: another process does already"),
        _ => anyhow::Error::new(error).context(format!("cannot listen on {addr}")),
    })
}

/// A service on its way up, as its library's `start` returns it.
///
/// Boxed as a trait object, and not an `async fn`, for the compiler's sake: the body of an async function is compiled
/// by every crate that awaits it, so each program, and each test of a program, would compile the whole service again.
pub type Starting = BoxFuture<'static, anyhow::Result<Running>>;

/// A service at work. Stops when the token it was started with falls.
pub struct Running {
    /// Where it listens (the real port, also when asked for port 0).
    pub addr: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
    /// In a mutex only so that a `Running` can be shared: futures cannot.
    last: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Running {
    /// Adds a worker: [`Self::join`] waits for it too. The worker must watch the same shutdown token.
    #[must_use]
    pub fn also(mut self, worker: JoinHandle<()>) -> Self {
        self.tasks.push(worker);
        self
    }

    /// Adds what must be done when all workers have ended, in the order added: close a session, a database.
    #[must_use]
    pub fn finally(mut self, last: impl Future<Output = ()> + Send + 'static) -> Self {
        self.last
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::pin(last));
        self
    }

    /// Waits until the service has stopped. Says so if a part of it panicked.
    pub async fn join(self) -> anyhow::Result<()> {
        let mut result = Ok(());
        for task in self.tasks {
            if let Err(error) = task.await {
                result = Err(error).context("a part of the service failed");
            }
        }
        for last in self.last.into_inner().unwrap_or_else(PoisonError::into_inner) {
            last.await;
        }
        result
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

/// Serves until `shutdown` falls, then drains.
pub fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) -> Running {
    let addr = listener.local_addr().expect("a listening socket has an address");
    let task = tokio::spawn(run(listener, router, shutdown));
    Running {
        addr,
        tasks: vec![task],
        last: Mutex::default(),
    }
}

async fn run(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    let seats = Seats::new(limits::connections_max());
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => match seats.take() {
                    Some(seat) => {
                        connections.spawn(serve_connection(stream, router.clone(), shutdown.clone(), seat));
                    }
                    None => tracing::debug!(%peer, "every connection is being served, a new one was hung up on"),
                },
                Err(error) => {
                    // Out of file descriptors, mostly; trying again at once would spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let drained =
        tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::info!(
            connections = connections.len(),
            "cutting connections that did not end in time"
        );
        connections.shutdown().await;
    }
}

async fn serve_connection(stream: TcpStream, router: Router, shutdown: CancellationToken, seat: Seat) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "cannot set a connection's options");
    }
    let seat = Arc::new(seat);
    let service = service_fn({
        let seat = seat.clone();
        move |mut request: Request<Incoming>| {
            seat.work();
            // For a connection that is upgraded and goes on without this server: the seat goes with it.
            request.extensions_mut().insert(seat.clone());
            let (answering, seat) = (router.clone().oneshot(request), seat.clone());
            async move {
                let response = answering.await?;
                Ok::<_, Infallible>(response.map(|body| Served { body, seat }))
            }
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = seat.lost() => return,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Small answers go out now, not when the next one comes.
    stream.set_nodelay(true)?;
    // The kernel gives up a connection whose other end takes nothing, or is gone.
    #[cfg(target_os = "linux")]
    SockRef::from(stream).set_tcp_user_timeout(Some(UNREAD_MAX))?;
    Ok(())
}

/// An answer on its way. The connection is at work until it is out, or given up.
struct Served {
    body: Body,
    seat: Arc<Seat>,
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.seat.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_given_up_by_the_kernel() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let addr = listener.local_addr().expect("it listens");
        let (_near, accepted) = tokio::join!(TcpStream::connect(addr), listener.accept());
        let (far, _) = accepted.expect("a connection");
        prepare(&far).expect("options");
        let timeout = SockRef::from(&far).tcp_user_timeout().expect("an option");
        assert_eq!(timeout, Some(UNREAD_MAX));
    }
}
