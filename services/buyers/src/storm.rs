//! The retry storm: what real clients do to a shop on a bad network.
//!
//! *Triples* send one purchase three times in parallel (a double click, a proxy that retries), under one key.
//! *Lost replies* pay with a card whose processor charges and then drops the connection; they lose patience,
//! hang up, and ask again under the same key until they know, and then once more to see that the answer
//! stands. Right is: one purchase and one charge per key, and every further answer is either the stored one,
//! marked `Idempotent-Replayed: true`, or "still at it".

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::burst::all_of;
use crate::{Answer, Order, Phase, Plan, Progress, Record, Seed, Shop, StormPlan};

/// Most requests of one buyer who retries.
pub const ATTEMPTS_MAX: u32 = 12;
/// A buyer hangs up its first request after 300 ms and up to this much more.
const PATIENCE_SPREAD_MS: u64 = 400;
/// Longest pause between two requests, whatever `Retry-After` says: people are impatient.
const PAUSE_MAX: Duration = Duration::from_millis(1000);

/// One request, before it is known when the door opened.
struct Asked {
    order: Order,
    attempt: u32,
    sent: Instant,
    latency: Duration,
    answer: Answer,
}

/// Releases the storm; without one in the plan, nothing happens.
pub async fn release(shop: &Shop, plan: &Plan, progress: &Progress) -> Vec<Record> {
    let Some(StormPlan {
        triples,
        lost_replies,
    }) = plan.storm
    else {
        return Vec::new();
    };
    let people = triples * 3 + lost_replies;
    progress.enter(Phase::Storm, u64::from(people));
    let door = Arc::new(Barrier::new(people as usize + 1));
    let mut buyers: JoinSet<Vec<Asked>> = JoinSet::new();
    for index in 0..triples {
        for copy in 0..3 {
            let order = plan.triple_order(index);
            let request = shop.purchase(&order, plan.request_timeout);
            let (door, progress) = (Arc::clone(&door), progress.clone());
            buyers.spawn(async move {
                door.wait().await;
                let sent = Instant::now();
                let answer = Answer::read(request.send().await).await;
                progress.answered(&answer);
                let latency = sent.elapsed();
                vec![Asked {
                    order,
                    attempt: copy,
                    sent,
                    latency,
                    answer,
                }]
            });
        }
    }
    for index in 0..lost_replies {
        let order = plan.lost_reply_order(index);
        let patience = 300 + Seed(plan.seed).below("patience", u64::from(index), PATIENCE_SPREAD_MS);
        let (shop, timeout) = (shop.clone(), plan.request_timeout);
        let (door, progress) = (Arc::clone(&door), progress.clone());
        buyers.spawn(async move {
            door.wait().await;
            ask_until_known(&shop, &order, Duration::from_millis(patience), timeout, &progress).await
        });
    }
    door.wait().await;
    let asked: Vec<Asked> = all_of(buyers).await.into_iter().flatten().collect();
    let released = asked
        .iter()
        .map(|asked| asked.sent)
        .min()
        .unwrap_or_else(Instant::now);
    let mut records: Vec<_> = asked
        .into_iter()
        .map(
            |Asked {
                 order,
                 attempt,
                 sent,
                 latency,
                 answer,
             }| { Record::new(&order, attempt, sent - released, latency, answer) },
        )
        .collect();
    records.sort_by_key(|record| (record.group, record.index, record.attempt));
    records
}

async fn ask_until_known(
    shop: &Shop,
    order: &Order,
    patience: Duration,
    timeout: Duration,
    progress: &Progress,
) -> Vec<Asked> {
    let mut seen = Vec::new();
    let mut known = false;
    for attempt in 0..ATTEMPTS_MAX {
        let sent = Instant::now();
        let answer = shop
            .buy(order, if attempt == 0 { patience } else { timeout })
            .await;
        progress.answered(&answer);
        let (is_final, retry_after_s) = (answer.is_final(), answer.retry_after_s);
        let (order, latency) = (order.clone(), sent.elapsed());
        seen.push(Asked {
            order,
            attempt,
            sent,
            latency,
            answer,
        });
        if known {
            break; // that was the once-more
        }
        known = is_final;
        if !known {
            let pause = retry_after_s.map_or(Duration::from_millis(100), Duration::from_secs);
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
    }
    seen
}

/// Answers that should have been the stored one, or "still at it", and were neither: per key, each first-hand
/// final answer beyond the first, and each replay that says something else than the first-hand answer did.
pub fn wrong_duplicates(records: &[Record]) -> u64 {
    let mut by_key: BTreeMap<&str, Vec<&Answer>> = BTreeMap::new();
    for record in records {
        by_key
            .entry(&record.idempotency_key)
            .or_default()
            .push(&record.answer);
    }
    by_key.values().map(|answers| wrong_of_one_key(answers)).sum()
}

fn wrong_of_one_key(answers: &[&Answer]) -> u64 {
    let finals = || answers.iter().filter(|a| a.is_final());
    let first_hand = finals().filter(|a| !a.replayed).count() as u64;
    // When every first-hand answer was lost on the way, the replays must at least agree with each other.
    let Some(stored) = finals().find(|a| !a.replayed).or_else(|| finals().next()) else {
        return 0;
    };
    let told = |a: &Answer| (a.status, a.slug.clone(), a.purchase_id.clone(), a.tickets.clone());
    let differing = finals().filter(|a| a.replayed && told(a) != told(stored)).count() as u64;
    first_hand.saturating_sub(1) + differing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, status: u16, id: &str, replayed: bool) -> Record {
        let body = format!(r#"{{"id":"{id}"}}"#);
        Record {
            group: "triple",
            index: 0,
            attempt: 0,
            idempotency_key: key.into(),
            sent_ms: 0.0,
            latency_ms: 1.0,
            answer: Answer::parse(status, replayed, Some(1), body.as_bytes()),
        }
    }

    #[test]
    fn the_stored_answer_and_still_at_it_are_right() {
        let mut still = record("k", 409, "p-1", false);
        still.answer.slug = Some("purchase-in-progress".into());
        let right = [
            record("k", 201, "p-1", false),
            still,
            record("k", 201, "p-1", true),
            record("k", 503, "x", false),
        ];
        assert_eq!(wrong_duplicates(&right), 0);
    }

    #[test]
    fn a_second_first_hand_sale_under_one_key_is_wrong() {
        let wrong = [
            record("k", 201, "p-1", false),
            record("k", 201, "p-2", false),
            record("k2", 201, "p-3", false),
        ];
        assert_eq!(wrong_duplicates(&wrong), 1);
    }

    #[test]
    fn a_replay_that_tells_another_story_is_wrong() {
        let wrong = [record("k", 201, "p-1", false), record("k", 201, "p-2", true)];
        assert_eq!(wrong_duplicates(&wrong), 1);
        let first_hand_lost = [record("k", 201, "p-1", true), record("k", 402, "p-1", true)];
        assert_eq!(wrong_duplicates(&first_hand_lost), 1);
    }
}
