//! Rounds: one at a time, in the background, against our own front door.
//!
//! One at a time, because two bursts on one machine would measure each other. A round goes through the front
//! door like any buyer: what it shows is what a buyer would see. Rounds are kept in memory, the last fifty; the
//! books they leave behind are in the services.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use buyers::{Plan, Progress, RoundReport, RunId, Shop, ShopError, StormPlan};
use chrono::Utc;
use http::StatusCode;
use service_kit::Problem;
use ticketing_types::Strategy;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::round::{RoundStatus, RoundView, StartRound};

/// How many rounds are remembered.
const KEPT_MAX: usize = 50;
/// When to ask again while another round is running.
const LATER: Duration = Duration::from_secs(5);

/// All rounds of this front door. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rounds {
    shop: Shop,
    kept: Arc<Mutex<VecDeque<Entry>>>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

struct Entry {
    view: RoundView,
    progress: Progress,
}

impl Entry {
    fn now(&self) -> RoundView {
        RoundView {
            progress: self.progress.now(),
            ..self.view.clone()
        }
    }
}

impl Rounds {
    /// No rounds yet; they will buy from this shop.
    pub(crate) fn new(shop: Shop, shutdown: CancellationToken) -> Self {
        Self {
            shop,
            kept: Arc::default(),
            tasks: TaskTracker::new(),
            shutdown,
        }
    }

    /// Starts one, unless another one is running.
    pub(crate) fn start(&self, request: StartRound) -> Result<RoundView, Problem> {
        let strategy = request.check()?;
        let plan = plan(&request, strategy);
        let mut kept = self.kept();
        if let Some(running) = kept
            .iter()
            .find(|entry| entry.view.status == RoundStatus::Running)
        {
            return Err(Problem::new(StatusCode::CONFLICT, "round-running")
                .detail("a round is running; two at a time would measure each other")
                .with("round", &running.view.id)
                .retry_after(LATER));
        }
        let progress = Progress::default();
        let view = RoundView {
            id: format!("round-{}", plan.run),
            status: RoundStatus::Running,
            request,
            event_id: plan.event_id(),
            started_at: Utc::now(),
            progress: progress.now(),
            result: None,
            detail: None,
        };
        kept.push_front(Entry {
            view: view.clone(),
            progress: progress.clone(),
        });
        kept.truncate(KEPT_MAX);
        drop(kept);
        let (rounds, id) = (self.clone(), view.id.clone());
        self.tasks.spawn(async move {
            let result = tokio::select! {
                result = buyers::round::run(&rounds.shop, &plan, &progress) => Some(result),
                () = rounds.shutdown.cancelled() => None,
            };
            rounds.finish(&id, result);
        });
        Ok(view)
    }

    /// Newest first.
    pub(crate) fn list(&self) -> Vec<RoundView> {
        self.kept().iter().map(Entry::now).collect()
    }

    /// One of them.
    pub(crate) fn get(&self, id: &str) -> Option<RoundView> {
        self.kept()
            .iter()
            .find(|entry| entry.view.id == id)
            .map(Entry::now)
    }

    /// The newest.
    pub(crate) fn latest(&self) -> Option<RoundView> {
        self.kept().front().map(Entry::now)
    }

    /// Waits until none is running any more; for the end of the process.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn finish(&self, id: &str, result: Option<Result<RoundReport, ShopError>>) {
        let mut kept = self.kept();
        let Some(entry) = kept.iter_mut().find(|entry| entry.view.id == id) else {
            return;
        };
        let view = &mut entry.view;
        match result {
            Some(Ok(report)) => {
                tracing::info!(round.id = id, verdict = %report.verdict, reason = report.reason, "a round is over");
                view.status = RoundStatus::Done;
                view.result = Some(report);
            }
            Some(Err(error @ ShopError::StrategyUnavailable { .. })) => {
                view.status = RoundStatus::Skipped;
                view.detail = Some(error.to_string());
            }
            Some(Err(error)) => {
                tracing::warn!(round.id = id, %error, "a round could not be run");
                view.status = RoundStatus::Failed;
                view.detail = Some(error.to_string());
            }
            None => {
                view.status = RoundStatus::Failed;
                view.detail = Some("the front door was stopped meanwhile".to_owned());
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn plan(request: &StartRound, strategy: Strategy) -> Plan {
    Plan {
        seed: request.seed,
        payment_key: request.payment_key,
        capacity: request.capacity,
        buyers: request.buyers,
        storm: request.retry_storm.then(StormPlan::default),
        ..Plan::new(RunId::fresh(), strategy)
    }
}
