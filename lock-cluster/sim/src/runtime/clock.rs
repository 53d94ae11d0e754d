//! Time as a machine sees it.
//!
//! There is one true time, the runtime's virtual nanoseconds, and nobody in the simulation may read it but the world.
//! A scope's clock runs at its own rate: what it calls 600 ms is a little more or less in truth. Timers follow: a
//! machine whose clock is fast wakes early.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use openraft_rt_sim::SimInstant;

use super::scope::Scope;

/// Clocks start far from zero, as on a machine that has been up for a day: code may subtract.
const UPTIME_NS: u64 = 86_400_000_000_000;
const MILLION: u128 = 1_000_000;

/// True time since the simulation began, in nanoseconds.
pub fn true_ns() -> u64 {
    SimInstant::try_now().map_or(0, |now| nanos(now.elapsed_since_start()))
}

/// A moment on the clock of the scope that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalInstant(u64);

impl LocalInstant {
    pub(super) fn read() -> Self {
        let passed = u128::from(true_ns()) * rate() / MILLION;
        Self(UPTIME_NS + u64::try_from(passed).expect("a simulation does not last for centuries"))
    }
}

/// How long a scope's `span` is in truth. Rounded up: a timer that fires a nanosecond early would find its time not
/// yet come, and spin.
pub(super) fn true_span(span: Duration) -> Duration {
    let rate = rate();
    if rate == MILLION {
        return span;
    }
    let ns = (span.as_nanos() * MILLION).div_ceil(rate) + 1;
    Duration::from_nanos(u64::try_from(ns).expect("a simulation does not last for centuries"))
}

/// When, in truth, the current scope's clock will show `moment`; now, if it has.
pub fn true_moment(moment: LocalInstant) -> u64 {
    true_ns() + nanos(true_span(moment - LocalInstant::read()))
}

/// Millionths of a local second in one true second.
fn rate() -> u128 {
    let drift = Scope::current().map_or(0, |scope| scope.drift_ppm());
    u128::try_from(i128::try_from(MILLION).expect("small") + i128::from(drift))
        .expect("no clock runs backwards")
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("a simulation does not last for centuries")
}

impl openraft_rt::Instant for LocalInstant {
    fn now() -> Self {
        Self::read()
    }
}

impl Add<Duration> for LocalInstant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + nanos(span))
    }
}

impl AddAssign<Duration> for LocalInstant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for LocalInstant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0 - nanos(span))
    }
}

impl SubAssign<Duration> for LocalInstant {
    fn sub_assign(&mut self, span: Duration) {
        *self = *self - span;
    }
}

impl Sub for LocalInstant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
