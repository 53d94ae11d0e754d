//! [`CallContext`]: what travels with a request through the whole suite (DESIGN §5.5).
//!
//! Strategy, payment key, an injected fault and the trace belong to the *request*, not to a service: the
//! handler takes a `CallContext`, and every call it makes inside the suite carries the same one on. A request
//! that comes without a trace gets one here, so that one purchase is one trace in all logs.
//!
//! The context also carries the fate of the reply. `drop-reply` ("the work is done, the answer is lost") may
//! fire deep inside the work; it only leaves a mark here, the work goes on, and [`crate::finish()`] sees the mark
//! when the answer is ready and closes the connection instead.

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, StatusCode, request::Parts},
};
use ticketing_types::{FaultSpec, PaymentKey, Strategy, header};

use crate::{faults::Faults, problem::Problem};

/// What travels with a request. [`Default`] is a context without wishes, for workers.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// How critical sections are guarded; none: as the service is configured.
    pub strategy: Option<Strategy>,
    /// How payment keys are made; none: as the strategy wants.
    pub payment_key: Option<PaymentKey>,
    /// A fault for this request alone.
    pub fault: Option<FaultSpec>,
    /// W3C Trace Context.
    pub traceparent: Option<String>,
    reply: ReplyFate,
}

/// Whether the reply of the current request shall be lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplyFate(Arc<AtomicBool>);

impl ReplyFate {
    pub(crate) fn is_dropped(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl CallContext {
    /// A context that asks for a strategy; for callers at the edge of the suite.
    pub fn with_strategy(strategy: Strategy) -> Self {
        Self {
            strategy: Some(strategy),
            ..Self::default()
        }
    }

    /// The strategy of the request, or else the service's own.
    pub fn strategy_or(&self, default: Strategy) -> Strategy {
        self.strategy.unwrap_or(default)
    }

    /// How payment keys are made: as the request says, or else as its strategy wants.
    pub fn payment_key_or(&self, strategy: Strategy) -> PaymentKey {
        self.payment_key.unwrap_or_else(|| strategy.default_payment_key())
    }

    /// The trace id inside `traceparent`, for logs.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.split('-').nth(1)
    }

    /// Puts the headers on an outgoing request.
    pub fn apply(&self, mut request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        if let Some(strategy) = self.strategy {
            request = request.header(header::LOCK_STRATEGY, strategy.name());
        }
        if let Some(payment_key) = self.payment_key {
            request = request.header(header::PAYMENT_KEY, payment_key.name());
        }
        if let Some(fault) = &self.fault {
            request = request.header(header::FAULT, fault.to_string());
        }
        if let Some(traceparent) = &self.traceparent {
            request = request.header(header::TRACEPARENT, traceparent);
        }
        request
    }

    /// Lets the work finish and its answer be lost. Beside the fault board, the gateway's test cards do this.
    pub fn drop_reply(&self) {
        self.reply.0.store(true, Relaxed);
    }

    fn read(headers: &HeaderMap, faults_enabled: bool, reply: ReplyFate) -> Result<Self, Problem> {
        let strategy = one(headers, header::LOCK_STRATEGY)?
            .map(parse_strategy)
            .transpose()?;
        let payment_key = one(headers, header::PAYMENT_KEY)?
            .map(|text| parse(header::PAYMENT_KEY, text))
            .transpose()?;
        // Where faults are off the header means nothing, not even when it is wrong.
        let fault = match faults_enabled {
            true => one(headers, header::FAULT)?
                .map(|text| parse(header::FAULT, text))
                .transpose()?,
            false => None,
        };
        // A malformed traceparent restarts the trace, as the standard asks; it never fails a request.
        let traceparent = headers
            .get(header::TRACEPARENT)
            .and_then(|value| value.to_str().ok())
            .filter(|value| is_traceparent(value))
            .map_or_else(new_traceparent, str::to_owned);
        Ok(Self {
            strategy,
            payment_key,
            fault,
            traceparent: Some(traceparent),
            reply,
        })
    }
}

/// The only value of a header; two of them contradict each other.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Problem::invalid(
            "",
            format!("the header {name} is there more than once"),
        ));
    }
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim())),
        Err(_) => Err(Problem::invalid(
            "",
            format!("the header {name} is not visible ASCII"),
        )),
    }
}

fn parse<T: FromStr<Err = ticketing_types::Invalid>>(name: &str, text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|why| Problem::invalid("", format!("the header {name}: {why}")))
}

/// 400 `unknown-strategy` with the known ones, or the strategy; also for strategies in bodies and queries.
pub fn parse_strategy(text: &str) -> Result<Strategy, Problem> {
    text.parse().map_err(|_| {
        Problem::new(StatusCode::BAD_REQUEST, "unknown-strategy")
            .detail(format!("{text:?} is no strategy"))
            .with(
                "known",
                Strategy::ALL
                    .iter()
                    .map(|strategy| strategy.name())
                    .collect::<Vec<_>>(),
            )
    })
}

/// `00-<32 hex>-<16 hex>-<2 hex>`, lower case, ids not all zero.
fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [version, trace, span, flags]
        if hex(version, 2) && version != "ff" && hex(flags, 2)
            && hex(trace, 32) && trace.bytes().any(|byte| byte != b'0')
            && hex(span, 16) && span.bytes().any(|byte| byte != b'0'))
}

fn new_traceparent() -> String {
    // `| 1`: an id of zeros would be invalid.
    format!(
        "00-{:032x}-{:016x}-01",
        rand::random::<u128>() | 1,
        rand::random::<u64>() | 1
    )
}

impl<S: Send + Sync> FromRequestParts<S> for CallContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let faults_enabled = parts.extensions.get::<Faults>().is_some_and(Faults::enabled);
        let reply = parts.extensions.get::<ReplyFate>().cloned().unwrap_or_default();
        Self::read(&parts.headers, faults_enabled, reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn read(headers: &[(&'static str, &'static str)], faults_enabled: bool) -> Result<CallContext, Problem> {
        let headers = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        CallContext::read(&headers, faults_enabled, ReplyFate::default())
    }

    #[test]
    fn the_headers_arrive_as_types() {
        let context = read(
            &[
                ("lock-strategy", "raft-unfenced"),
                ("payment-key", "fresh"),
                ("fault", "billing.x=drop-reply@50"),
            ],
            true,
        )
        .expect("all good");
        assert_eq!(context.strategy, Some(Strategy::RaftUnfenced));
        assert_eq!(context.payment_key, Some(PaymentKey::Fresh));
        assert_eq!(context.fault.expect("a fault").percent, 50);
    }

    #[test]
    fn an_unknown_strategy_is_answered_with_the_known_ones() {
        let problem = read(&[("lock-strategy", "mutex")], true).expect_err("unknown");
        assert_eq!(problem.slug, "unknown-strategy");
        let known = problem.member::<Vec<String>>("known").expect("a list");
        assert!(known.contains(&"raft".to_owned()), "{known:?}");
    }

    #[test]
    fn a_bad_fault_is_refused_where_faults_are_on_and_ignored_where_they_are_off() {
        assert_eq!(
            read(&[("fault", "nonsense")], true).expect_err("bad").slug,
            "invalid-request"
        );
        assert_eq!(
            read(&[("fault", "nonsense")], false).expect("ignored").fault,
            None
        );
        assert_eq!(
            read(&[("fault", "a.b=exit")], false).expect("ignored").fault,
            None
        );
    }

    #[test]
    fn a_good_trace_goes_on_and_a_bad_one_starts_anew() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(
            read(&[("traceparent", good)], true)
                .expect("good")
                .traceparent
                .as_deref(),
            Some(good)
        );
        let anew = read(&[("traceparent", "00-zz-1-01")], true)
            .expect("good")
            .traceparent
            .expect("a new one");
        assert!(is_traceparent(&anew), "{anew}");
    }
}
