//! Everything that a round is judged by, gathered in one place so that the judge needs no network.

use ticketing_types::audit::AuditReport;

use crate::{Burst, Phase, Plan, Progress, Record, Shop};

/// What became of the 201s that buyers saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Purchases that some buyer was told are completed.
    pub seen: u64,
    /// Those that the books do not know so any more, each in words.
    pub lost: Vec<String>,
    /// Those that could not be asked for.
    pub unreadable: u64,
}

/// Everything that a round is judged by.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What it was to be.
    pub plan: Plan,
    /// What the buyers saw.
    pub burst: Burst,
    /// What those saw who asked twice.
    pub storm: Vec<Record>,
    /// Whether everything came to rest in time.
    pub at_rest: bool,
    /// The audit of the burst's event.
    pub audit: Option<AuditReport>,
    /// The audit of the storm's event.
    pub storm_audit: Option<AuditReport>,
    /// The 201s, asked for again.
    pub kept: Kept,
}

impl Evidence {
    /// Waits for rest, reads both audits, and asks again for every 201.
    pub async fn gather(
        shop: &Shop,
        plan: &Plan,
        burst: Burst,
        storm: Vec<Record>,
        progress: &Progress,
    ) -> Self {
        progress.enter(Phase::Resting, 0);
        let mut events = vec![plan.event_id()];
        events.extend(plan.storm.map(|_| plan.storm_event_id()));
        let at_rest = shop.wait_for_rest(&events, plan.rest_timeout).await;

        let all: Vec<Record> = burst.records.iter().chain(&storm).cloned().collect();
        let completed = all.iter().filter(|r| r.answer.is_completed()).count();
        progress.enter(Phase::Checking, completed as u64);
        let kept = shop.check_kept(&all).await;
        let audit = shop.audit(&plan.event_id()).await.ok();
        let storm_audit = match plan.storm {
            Some(_) => shop.audit(&plan.storm_event_id()).await.ok(),
            None => None,
        };
        Self {
            plan: plan.clone(),
            burst,
            storm,
            at_rest,
            audit,
            storm_audit,
            kept,
        }
    }
}
