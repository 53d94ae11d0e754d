//! One burst with goose: every buyer is a user of its own and sends its purchase once.
//!
//! goose starts its users one after the other; a barrier holds them until the last one stands at the door, so
//! that the burst is a burst. Its own counters see 409 and 402 as failures: the outcomes are counted from the
//! answers instead, by the same code as everywhere ([`buyers::Answer`]).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use buyers::{Answer, Burst, Order, Phase, Plan, Progress, Record};
use goose::config::GooseConfiguration;
use goose::prelude::*;
use tokio::sync::Barrier;

/// How long the first user may wait for the last one before the round is given up.
const DOOR_OPENS_WITHIN: Duration = Duration::from_secs(60);
/// Users started per second: as many as goose can; the barrier makes them simultaneous.
const START_RATE: &str = "100000";

/// What all users of one burst share.
struct Round {
    plan: Plan,
    progress: Progress,
    door: Barrier,
    seen: Mutex<Vec<Seen>>,
}

struct Seen {
    order: Order,
    sent: Instant,
    latency: Duration,
    answer: Answer,
}

/// Releases the plan's buyers at `base` together. An interrupt (Ctrl-C) is an error: half a burst means nothing.
pub async fn burst(base: &str, plan: &Plan, progress: &Progress) -> anyhow::Result<Burst> {
    progress.enter(Phase::Burst, u64::from(plan.buyers));
    let round = Arc::new(Round {
        plan: plan.clone(),
        progress: progress.clone(),
        door: Barrier::new(plan.buyers as usize),
        seen: Mutex::default(),
    });
    let buyer = scenario!("buyer").register_transaction(buy(Arc::clone(&round)).set_name("buy"));
    GooseAttack::initialize_with_config(configuration(base, plan))
        .map_err(in_full)?
        .set_client_builder_without_cookies(
            goose::client::GooseClientBuilder::new()
                .without_cookies()
                .timeout(plan.request_timeout),
        )
        .map_err(in_full)?
        .register_scenario(buyer)
        .execute()
        .await
        .map_err(in_full)?;

    let seen = std::mem::take(&mut *round.seen.lock().expect("no user panics while it holds the list"));
    if seen.len() < plan.buyers as usize {
        anyhow::bail!("interrupted: {} of {} buyers got to ask", seen.len(), plan.buyers);
    }
    Ok(records(seen))
}

/// goose's errors keep their reason out of their message.
fn in_full(error: GooseError) -> anyhow::Error {
    anyhow::anyhow!("the load generator refused: {error:?}")
}

fn configuration(base: &str, plan: &Plan) -> GooseConfiguration {
    let mut config = GooseConfiguration::default();
    config.host = Some(base.to_owned());
    config.users = Some(plan.buyers as usize);
    config.iterations = Some(1);
    config.increase_rate = Some(START_RATE.to_owned());
    config.quiet = 2;
    config.no_print_metrics = true;
    config.no_error_summary = true;
    // Its control port would listen on all addresses.
    config.no_telnet = true;
    config
}

fn buy(round: Arc<Round>) -> Transaction {
    Transaction::new(Arc::new(move |user: &mut GooseUser| {
        let round = Arc::clone(&round);
        Box::pin(async move {
            let order = round.plan.burst_order(user.weighted_users_index as u32);
            let request = order.dress(user.get_request_builder(&GooseMethod::Post, Order::PATH)?);
            let request = GooseRequest::builder()
                .method(GooseMethod::Post)
                .path(Order::PATH)
                .name("POST /v1/purchases")
                .set_request_builder(request)
                .build();
            if tokio::time::timeout(DOOR_OPENS_WITHIN, round.door.wait())
                .await
                .is_err()
            {
                return Ok(());
            }
            let sent = Instant::now();
            let response = user.request(request).await?.response;
            let answer = Answer::read(response).await;
            let latency = sent.elapsed();
            round.progress.answered(&answer);
            let mut seen = round.seen.lock().expect("no user panics while it holds the list");
            seen.push(Seen {
                order,
                sent,
                latency,
                answer,
            });
            Ok(())
        })
    }))
}

fn records(seen: Vec<Seen>) -> Burst {
    let Some(released) = seen.iter().map(|s| s.sent).min() else {
        return Burst::default();
    };
    let wall = seen.iter().map(|s| s.sent + s.latency).max().unwrap_or(released) - released;
    let mut records: Vec<_> = seen
        .into_iter()
        .map(|s| Record::new(&s.order, 0, s.sent - released, s.latency, s.answer))
        .collect();
    records.sort_by_key(|record| record.index);
    Burst { records, wall }
}
