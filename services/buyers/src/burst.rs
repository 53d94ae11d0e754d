//! The burst: everybody waits at the door with the request already written, and the door opens once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::{Answer, Phase, Plan, Progress, Record, Shop};

/// What the burst came to.
#[derive(Debug, Clone, Default)]
pub struct Burst {
    /// One record per buyer.
    pub records: Vec<Record>,
    /// From the release to the last answer.
    pub wall: Duration,
}

/// Releases the plan's buyers together; each sends its purchase once.
pub async fn release(shop: &Shop, plan: &Plan, progress: &Progress) -> Burst {
    progress.enter(Phase::Burst, u64::from(plan.buyers));
    let door = Arc::new(Barrier::new(plan.buyers as usize + 1));
    let mut buyers = JoinSet::new();
    for index in 0..plan.buyers {
        let order = plan.burst_order(index);
        let request = shop.purchase(&order, plan.request_timeout);
        let (door, progress) = (Arc::clone(&door), progress.clone());
        buyers.spawn(async move {
            door.wait().await;
            let sent = Instant::now();
            let answer = Answer::read(request.send().await).await;
            progress.answered(&answer);
            (order, sent, sent.elapsed(), answer)
        });
    }
    door.wait().await;
    let answered = all_of(buyers).await;
    // The first request began the burst. When this task woke up from the door says nothing: with a thousand
    // others awake, that can be a while later.
    let released = answered
        .iter()
        .map(|(_, sent, ..)| *sent)
        .min()
        .unwrap_or_else(Instant::now);
    let mut records: Vec<_> = answered
        .into_iter()
        .map(|(order, sent, latency, answer)| Record::new(&order, 0, sent - released, latency, answer))
        .collect();
    records.sort_by_key(|record| record.index);
    let wall_ms = records
        .iter()
        .map(|r| r.sent_ms + r.latency_ms)
        .fold(0.0, f64::max);
    Burst {
        records,
        wall: Duration::from_secs_f64(wall_ms / 1000.0),
    }
}

/// What every task came to. Dropped half-way, it aborts those that are left.
pub(crate) async fn all_of<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(tasks.len());
    while let Some(one) = tasks.join_next().await {
        all.push(one.expect("a buyer neither panics nor is aborted"));
    }
    all
}
