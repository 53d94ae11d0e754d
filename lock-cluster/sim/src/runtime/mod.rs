//! The runtime that everything here runs on: one thread, virtual time, and machines that can fail.
//!
//! [`SimRt`] is `openraft-rt-sim` with two things put between it and its users: [`Scope`], which says to which
//! machine a task belongs, and [`LocalInstant`], that machine's idea of time. The lock service is generic over its
//! runtime and cannot tell the difference.

mod clock;
mod scope;

use std::io;
use std::time::Duration;

use lock_node::ServiceRt;
use openraft_rt::{AsyncRuntime, OptionalSend};
use openraft_rt_sim::{SimJoinError, SimRuntime};

pub use clock::{LocalInstant, true_moment, true_ns};
pub use scope::{Joined, Scope, take_panics};

/// The simulated runtime.
#[derive(Debug)]
pub struct SimRt(SimRuntime);

impl SimRt {
    /// A world whose every roll of dice follows from `seed`.
    pub fn with_seed(seed: u64) -> Self {
        Self(SimRuntime::with_seed(seed))
    }
}

impl ServiceRt for SimRt {}

impl AsyncRuntime for SimRt {
    type JoinError = SimJoinError;
    type JoinHandle<T: OptionalSend + 'static> = Joined<T>;
    type Sleep = <SimRuntime as AsyncRuntime>::Sleep;
    type Instant = LocalInstant;
    type TimeoutError = <SimRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <SimRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <SimRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <SimRuntime as AsyncRuntime>::Mpsc;
    type Watch = <SimRuntime as AsyncRuntime>::Watch;
    type Oneshot = <SimRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <SimRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        Scope::spawn(Scope::current(), future)
    }

    fn sleep(span: Duration) -> Self::Sleep {
        SimRuntime::sleep(clock::true_span(span))
    }

    fn sleep_until(deadline: LocalInstant) -> Self::Sleep {
        Self::sleep(deadline - LocalInstant::read())
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(span: Duration, future: F) -> Self::Timeout<R, F> {
        SimRuntime::timeout(clock::true_span(span), future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: LocalInstant,
        future: F,
    ) -> Self::Timeout<R, F> {
        Self::timeout(deadline - LocalInstant::read(), future)
    }

    fn is_panic(error: &SimJoinError) -> bool {
        SimRuntime::is_panic(error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        SimRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        Self(SimRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }

    fn spawn_blocking<F, T>(work: F) -> impl Future<Output = Result<T, io::Error>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        SimRuntime::spawn_blocking(work)
    }
}
