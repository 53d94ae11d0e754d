//! Fault points: named places where things can be made to go wrong, on purpose and repeatably (DESIGN §7).
//!
//! A point is one line in a service: `faults.hit("billing.after-capture", &ctx).await?`. Nothing happens there
//! unless the process was started with faults enabled *and* somebody armed the point, either for everybody
//! (`PUT /v1/faults/{point}`) or for one request (the `Fault` header).
//!
//! | effect | what it does at the point |
//! |---|---|
//! | `delay=500ms` | waits |
//! | `pause=6s` | waits, and lets the caller stop whatever keeps its lock alive first ([`Hit::on_pause`]) |
//! | `error=503` | gives back a [`Problem`] instead |
//! | `drop-reply` | marks the request: the work goes on, its answer is lost |
//! | `exit` | aborts the process, as `kill -9` would: nothing is flushed, nothing is released |
//!
//! Chance is drawn from the rule's seed and the number of the hit, never from the clock: the same seed over
//! the same sequence of hits fires at the same ones. What interleaves differently, of course, hits differently.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
pub use ticketing_types::Effect;

pub use crate::board::{FaultsView, Percent, PointView, Rule};
use crate::{board::faults_disabled, context::CallContext, problem::Problem};

/// The fault points of one process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Faults {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    enabled: bool,
    points: Mutex<BTreeMap<&'static str, Point>>,
}

#[derive(Debug, Default)]
struct Point {
    rule: Option<Rule>,
    hits: u64,
    fired: u64,
}

/// One arrival at a point; see [`Faults::at`].
#[must_use = "nothing happens until it is awaited with `.hit()`"]
pub struct Hit<'a, F = fn()> {
    faults: &'a Faults,
    point: &'static str,
    context: &'a CallContext,
    scope: Option<&'a str>,
    on_pause: Option<F>,
}

impl Faults {
    /// The points that a process has, all unarmed. Naming them here lets the board list them and refuse typos.
    pub fn new(enabled: bool, points: &[&'static str]) -> Self {
        let points = points.iter().map(|&point| (point, Point::default())).collect();
        Self {
            inner: Arc::new(Inner {
                enabled,
                points: Mutex::new(points),
            }),
        }
    }

    /// No points, all off.
    pub fn disabled() -> Self {
        Self::new(false, &[])
    }

    /// Whether anything can be armed at all.
    pub fn enabled(&self) -> bool {
        self.inner.enabled
    }

    /// Reaches a point: does what is armed there and says what it was. An error is the injected answer.
    pub async fn hit(&self, point: &'static str, context: &CallContext) -> Result<Option<Effect>, Problem> {
        self.at(point, context).hit().await
    }

    /// [`Self::hit`], with what else must stop when the section is paused (a session's keep-alive).
    pub async fn hit_with(
        &self,
        point: &'static str,
        context: &CallContext,
        on_pause: impl FnOnce(),
    ) -> Result<Option<Effect>, Problem> {
        self.at(point, context).on_pause(on_pause).hit().await
    }

    /// The long form: `faults.at(point, &ctx).scope(&id).on_pause(|| …).hit().await?`.
    pub fn at<'a>(&'a self, point: &'static str, context: &'a CallContext) -> Hit<'a> {
        Hit {
            faults: self,
            point,
            context,
            scope: None,
            on_pause: None,
        }
    }

    /// Reaches a point outside of any request (a log being flushed, a frame from a peer): says what is armed there
    /// for everybody and leaves doing it to the caller.
    pub fn check(&self, point: &'static str) -> Option<Effect> {
        if !self.enabled() {
            return None;
        }
        let mut points = self.points();
        let state = points.get_mut(point)?;
        state.hits += 1;
        let rule = state.rule.as_ref()?;
        let effect = drawn(rule.seed, state.hits, rule.percent.0).then(|| rule.effect.clone())?;
        state.fired += 1;
        Some(effect)
    }

    /// Arms a point.
    pub fn arm(&self, point: &str, rule: Rule) -> Result<(), Problem> {
        self.change(point, Some(rule))
    }

    /// Disarms a point.
    pub fn disarm(&self, point: &str) -> Result<(), Problem> {
        self.change(point, None)
    }

    /// The effective state.
    pub fn view(&self) -> FaultsView {
        let points = self
            .points()
            .iter()
            .map(|(&point, state)| PointView {
                point,
                rule: state.rule.clone(),
                hits: state.hits,
                fired: state.fired,
            })
            .collect();
        FaultsView {
            enabled: self.enabled(),
            points,
        }
    }

    fn change(&self, point: &str, rule: Option<Rule>) -> Result<(), Problem> {
        if !self.enabled() {
            return Err(faults_disabled());
        }
        let mut points = self.points();
        let Some(state) = points.get_mut(point) else {
            let known: Vec<_> = points.keys().collect();
            return Err(Problem::new(StatusCode::NOT_FOUND, "unknown-fault-point")
                .detail(format!("{point:?} is no fault point of this process"))
                .with("known", known));
        };
        *state = Point {
            rule,
            hits: 0,
            fired: 0,
        };
        Ok(())
    }

    /// Counts the hit and decides.
    fn decide(&self, point: &'static str, context: &CallContext, scope: Option<&str>) -> Option<Effect> {
        if !self.enabled() {
            return None;
        }
        let mut points = self.points();
        let state = points.entry(point).or_default();
        state.hits += 1;
        let hit = state.hits;
        let by_request = context
            .fault
            .as_ref()
            .filter(|fault| fault.point == point && drawn(0, hit, fault.percent))
            .map(|fault| fault.effect.clone());
        let by_rule = || {
            let rule = state.rule.as_ref()?;
            let in_scope = rule.scope.is_none() || rule.scope.as_deref() == scope;
            (in_scope && drawn(rule.seed, hit, rule.percent.0)).then(|| rule.effect.clone())
        };
        let effect = by_request.or_else(by_rule)?;
        state.fired += 1;
        Some(effect)
    }

    fn points(&self) -> MutexGuard<'_, BTreeMap<&'static str, Point>> {
        self.inner.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, F: FnOnce()> Hit<'a, F> {
    /// What the hit is about: the id of the event, payment or purchase.
    pub fn scope(mut self, scope: &'a str) -> Self {
        self.scope = Some(scope);
        self
    }

    /// What else must stop when the section is paused.
    pub fn on_pause<G: FnOnce()>(self, on_pause: G) -> Hit<'a, G> {
        let Self {
            faults,
            point,
            context,
            scope,
            ..
        } = self;
        Hit {
            faults,
            point,
            context,
            scope,
            on_pause: Some(on_pause),
        }
    }

    /// Does what is armed here and says what it was. An error is the injected answer.
    pub async fn hit(self) -> Result<Option<Effect>, Problem> {
        let Some(effect) = self.faults.decide(self.point, self.context, self.scope) else {
            return Ok(None);
        };
        tracing::warn!(fault.point = self.point, fault.effect = %effect, "fault injected");
        match &effect {
            Effect::Delay(wait) => tokio::time::sleep(*wait).await,
            Effect::Pause(wait) => {
                if let Some(on_pause) = self.on_pause {
                    on_pause();
                }
                tokio::time::sleep(*wait).await;
            }
            Effect::Error(status) => return Err(injected(self.point, *status)),
            Effect::DropReply => self.context.drop_reply(),
            Effect::Exit => std::process::abort(),
        }
        Ok(Some(effect))
    }
}

fn injected(point: &str, status: u16) -> Problem {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let problem = Problem::new(status, "injected-fault").detail(format!("armed at {point}"));
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            problem.retry_after(Duration::from_secs(1))
        }
        _ => problem,
    }
}

/// Whether hit number `hit` under `seed` is among the `percent`.
fn drawn(seed: u64, hit: u64, percent: u8) -> bool {
    // SplitMix64's finalizer: one multiplication per bit of quality, no state to keep.
    let mut mixed = seed.wrapping_add(hit.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    mixed % 100 < u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: &str = "inventory.critical-section";

    fn rule(effect: Effect, percent: u8, seed: u64) -> Rule {
        Rule {
            effect,
            percent: Percent(percent),
            seed,
            scope: None,
        }
    }

    fn bringing(fault: &str) -> CallContext {
        let mut context = CallContext::default();
        context.fault = Some(fault.parse().expect("a fault"));
        context
    }

    async fn fired(faults: &Faults, times: usize) -> Vec<bool> {
        let mut fired = Vec::new();
        for _ in 0..times {
            fired.push(faults.hit(POINT, &CallContext::default()).await.is_err());
        }
        fired
    }

    #[tokio::test]
    async fn the_same_seed_fires_at_the_same_hits() {
        let run = async |seed| {
            let faults = Faults::new(true, &[POINT]);
            faults
                .arm(POINT, rule(Effect::Error(503), 30, seed))
                .expect("known");
            fired(&faults, 200).await
        };
        let first = run(7).await;
        assert_eq!(first, run(7).await);
        assert_ne!(first, run(8).await);
        let count = first.iter().filter(|fired| **fired).count();
        assert!((40..=80).contains(&count), "about 30 percent of 200, was {count}");
    }

    #[tokio::test]
    async fn a_pause_stops_the_keep_alive_first() {
        let faults = Faults::new(true, &[POINT]);
        faults
            .arm(POINT, rule(Effect::Pause(Duration::ZERO), 100, 0))
            .expect("known");
        let mut stopped = false;
        let effect = faults
            .hit_with(POINT, &CallContext::default(), || stopped = true)
            .await;
        assert_eq!(effect, Ok(Some(Effect::Pause(Duration::ZERO))));
        assert!(stopped);
    }

    #[tokio::test]
    async fn a_scope_limits_a_rule_to_one_thing() {
        let faults = Faults::new(true, &[POINT]);
        let scoped = Rule {
            scope: Some("ev-1".into()),
            ..rule(Effect::Error(500), 100, 0)
        };
        faults.arm(POINT, scoped).expect("known");
        let context = CallContext::default();
        assert_eq!(faults.at(POINT, &context).scope("ev-2").hit().await, Ok(None));
        assert_eq!(faults.hit(POINT, &context).await, Ok(None));
        assert!(faults.at(POINT, &context).scope("ev-1").hit().await.is_err());
        let view = &faults.view().points[0];
        assert_eq!((view.hits, view.fired), (3, 1));
    }

    #[tokio::test]
    async fn a_request_brings_its_own_fault() {
        let faults = Faults::new(true, &[POINT]);
        let context = bringing(&format!("{POINT}=error=500"));
        assert!(faults.hit(POINT, &context).await.is_err());
        assert_eq!(faults.hit(POINT, &CallContext::default()).await, Ok(None));
        assert_eq!(faults.hit("inventory.other", &context).await, Ok(None));
    }

    #[tokio::test]
    async fn nothing_fires_where_faults_are_off() {
        let faults = Faults::new(false, &[POINT]);
        assert_eq!(
            faults
                .arm(POINT, rule(Effect::Exit, 100, 0))
                .expect_err("off")
                .slug,
            "faults-disabled"
        );
        let context = bringing(&format!("{POINT}=exit"));
        assert_eq!(faults.hit(POINT, &context).await, Ok(None));
    }
}
