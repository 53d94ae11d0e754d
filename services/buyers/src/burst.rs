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
    let released = Instant::now();
    let mut records = Vec::with_capacity(plan.buyers as usize);
    while let Some(buyer) = buyers.join_next().await {
        let (order, sent, latency, answer) = buyer.expect("a buyer neither panics nor is aborted");
        let sent = sent.saturating_duration_since(released);
        records.push(Record::new(&order, 0, sent, latency, answer));
    }
    let wall = released.elapsed();
    records.sort_by_key(|record| record.index);
    Burst { records, wall }
}
