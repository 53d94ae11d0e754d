//! Bind, serve, drain.
//!
//! A loop of our own instead of `axum::serve`, for one reason: the end. When the shutdown token falls, no new
//! connection is taken, idle ones close at once, requests in flight may finish, and after [`DRAIN`] whatever is
//! left (a client that reads a stream and never stops) is cut. `axum::serve` would wait for it for ever, and
//! leave its connection tasks behind when given up on; here they belong to a `JoinSet` and die with it.
//!
//! HTTP/1.1 only: inside the suite connections are kept alive and many, and a lost connection then loses one
//! request, not hundreds.

use std::{
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use axum::Router;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

/// How long requests in flight may go on after the shutdown token fell. The whole suite stops within 5 s.
pub const DRAIN: Duration = Duration::from_secs(4);
/// Connections waiting to be accepted: a burst of a thousand buyers arrives at once.
const BACKLOG: u32 = 4096;
/// How long a connection may stay silent between two requests. Longer than any client of ours keeps one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

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
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _peer)) => {
                    connections.spawn(serve_connection(stream, router.clone(), shutdown.clone()));
                }
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

async fn serve_connection(stream: TcpStream, router: Router, shutdown: CancellationToken) {
    // Small answers go out now, not when the next one comes.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
            .with_upgrades()
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}
