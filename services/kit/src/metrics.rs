//! Prometheus: a registry per service instance, and what every service counts about its HTTP.
//!
//! All series carry `service` and `instance`, because the all-in-one runs eight instances in one process and
//! their numbers must not melt together. Routes are counted by their pattern, never by the path: ids in labels
//! would make a series per purchase.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// The metrics of one service instance. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    requests: Family<RequestLabels, Counter>,
    duration: Family<RouteLabels, Histogram, fn() -> Histogram>,
    pub(crate) in_flight: Gauge,
    pub(crate) refused: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: String,
    route: String,
}

impl Metrics {
    /// An empty registry with the HTTP series in it.
    pub fn new(service: &str, instance: &str) -> Self {
        let labels = [("service", service), ("instance", instance)];
        let labels = labels.map(|(name, value)| (name.into(), value.to_owned().into()));
        let mut registry = Registry::with_labels(labels.into_iter());
        let requests = Family::default();
        let duration = Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        let (in_flight, refused) = (Gauge::default(), Counter::default());
        registry.register("http_requests", "Answers given", requests.clone());
        registry.register(
            "http_request_duration_seconds",
            "Time from request to answer",
            duration.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests being worked on",
            in_flight.clone(),
        );
        registry.register(
            "http_requests_refused",
            "Requests refused because too many were in flight",
            refused.clone(),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            requests,
            duration,
            in_flight,
            refused,
        }
    }

    /// Adds a service's own series: `metrics.register(|registry| registry.register("…", "…", counter.clone()))`.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The text that Prometheus scrapes.
    pub fn encode(&self) -> String {
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut body = String::new();
        text::encode(&mut body, &registry).expect("writing to a string cannot fail");
        body
    }

    pub(crate) fn observe(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route) = (method.to_owned(), route.to_owned());
        let labels = RequestLabels {
            method: method.clone(),
            route: route.clone(),
            status,
        };
        self.requests.get_or_create(&labels).inc();
        self.duration
            .get_or_create(&RouteLabels { method, route })
            .observe(took.as_secs_f64());
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Buckets from one millisecond to half a minute (a purchase may wait that long for its lock); also right for
/// lock waits and sections, in seconds.
pub fn latency_histogram() -> Histogram {
    Histogram::new([
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    ])
}
