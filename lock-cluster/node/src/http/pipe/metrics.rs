//! What is counted of the pipes: the HTTP series do not see what happens inside of one.

use std::sync::Arc;
use std::time::Duration;

use lock_pipe::{Answer, Call};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use service_kit::Metrics;
use service_kit::metrics::latency_histogram;

/// The calls' names as labels, in the order of [`Kind`].
const NAMES: [&str; 5] = ["open", "keep-alive", "close", "acquire", "release"];

/// What kind of call it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Open,
    KeepAlive,
    Close,
    Acquire,
    Release,
}

impl Kind {
    pub(super) fn of(call: &Call) -> Self {
        match call {
            Call::Open { .. } => Self::Open,
            Call::KeepAlive { .. } => Self::KeepAlive,
            Call::Close { .. } => Self::Close,
            Call::Acquire { .. } => Self::Acquire,
            Call::Release { .. } => Self::Release,
        }
    }

    fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The series of all pipes of a node. Clones share them.
#[derive(Clone)]
pub(super) struct PipeMetrics {
    open: Gauge,
    answers: Family<AnswerLabels, Counter>,
    durations: Family<CallLabels, Histogram, fn() -> Histogram>,
    /// The series of calls that succeed, looked up once: finding a label costs more than counting.
    usual: Arc<[(Counter, Histogram); 5]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    call: &'static str,
    /// The slug of the problem; `none` if there is none.
    problem: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    call: &'static str,
}

impl Default for PipeMetrics {
    fn default() -> Self {
        let answers = Family::<AnswerLabels, Counter>::default();
        let durations = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        let usual = NAMES.map(|call| {
            let problem = "none".to_owned();
            (
                answers.get_or_create_owned(&AnswerLabels { call, problem }),
                durations.get_or_create_owned(&CallLabels { call }),
            )
        });
        Self {
            open: Gauge::default(),
            answers,
            durations,
            usual: Arc::new(usual),
        }
    }
}

impl PipeMetrics {
    pub(super) fn register(&self, metrics: &Metrics) {
        metrics.register(|registry| {
            registry.register("lock_pipes", "Pipes that are open", self.open.clone());
            registry.register(
                "lock_pipe_calls",
                "Calls answered over pipes",
                self.answers.clone(),
            );
            registry.register(
                "lock_pipe_call_duration_seconds",
                "Time from a call to its answer, over pipes",
                self.durations.clone(),
            );
        });
    }

    /// Counts a pipe for as long as the result lives.
    pub(super) fn opened(&self) -> Open {
        self.open.inc();
        Open(self.open.clone())
    }

    pub(super) fn answered(&self, kind: Kind, answer: &Answer, took: Duration) {
        let (done, duration) = &self.usual[kind as usize];
        duration.observe(took.as_secs_f64());
        match answer {
            Ok(_) => drop(done.inc()),
            Err(problem) => {
                let labels = AnswerLabels {
                    call: kind.name(),
                    problem: problem.slug.clone(),
                };
                self.answers.get_or_create(&labels).inc();
            }
        }
    }
}

/// One open pipe.
pub(super) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
