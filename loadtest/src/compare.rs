//! Rounds of several strategies, one after the other, alternating: round 1 of each, then round 2 of each. A
//! machine that slows down half-way then slows all of them.

use std::io::IsTerminal as _;
use std::time::Duration;

use buyers::{
    Evidence, Phase, Plan, Progress, Record, RoundReport, RunId, Shop, ShopError, StormPlan, StrategyReport,
    judge, storm,
};
use ticketing_types::{FaultSpec, Strategy};

use crate::cli::CompareArgs;
use crate::machine::{Machine, Versions};
use crate::report::{self, Comparison, Settings, Timeline};
use crate::{attack, target::Target};

/// Runs the comparison, writes the reports, and returns the exit status (DESIGN §8).
pub async fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    std::fs::create_dir_all(&args.out)
        .map_err(|error| anyhow::anyhow!("cannot write reports to {}: {error}", args.out.display()))?;
    let target = Target::open(args).await?;
    let description = target.description.clone();
    let rounds = tokio::select! {
        rounds = all_rounds(args, &target.base) => rounds,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    target.close().await?;
    let Rounds {
        strategies,
        timelines,
    } = rounds?;

    let comparison = Comparison {
        machine: Machine::describe(),
        versions: Versions::of_this_build(),
        settings: Settings::of(args, description),
        strategies,
        timelines,
    };
    report::show(&comparison);
    report::write(&comparison, &args.out)?;
    Ok(judge::exit_status(
        &comparison.strategies,
        threshold_missed(args, &comparison.strategies),
    ))
}

struct Rounds {
    strategies: Vec<StrategyReport>,
    timelines: Vec<Timeline>,
}

/// One strategy's rounds so far, or why it is not run.
struct Column {
    strategy: Strategy,
    rounds: Vec<RoundReport>,
    skipped: Option<String>,
}

async fn all_rounds(args: &CompareArgs, base: &str) -> anyhow::Result<Rounds> {
    let shop = Shop::new(base)?;
    let run = RunId::fresh();
    let mut timelines = Vec::new();
    let mut columns: Vec<Column> = args
        .strategies
        .iter()
        .map(|&strategy| Column {
            strategy,
            rounds: Vec::new(),
            skipped: None,
        })
        .collect();
    for n in 0..args.rounds {
        for column in columns.iter_mut().filter(|column| column.skipped.is_none()) {
            // Each strategy's events are its own: the run's id carries the strategy.
            let run = RunId::named(&format!("{}{}", &run.to_string()[..8], short(column.strategy)));
            let plan = plan(args, run, column.strategy, n);
            match round(&shop, &plan, args.rounds, n).await? {
                Played::Round(report, timeline) => {
                    if n == 0 {
                        timelines.push(timeline);
                    }
                    column.rounds.push(*report);
                }
                Played::Skipped(why) => column.skipped = Some(why),
            }
        }
    }
    let strategies = columns
        .into_iter()
        .map(|column| match column.skipped {
            Some(why) => StrategyReport::skipped(column.strategy, why),
            None => judge::strategy(column.strategy, column.rounds),
        })
        .collect();
    Ok(Rounds {
        strategies,
        timelines,
    })
}

/// Two letters that tell the strategies apart.
fn short(strategy: Strategy) -> String {
    let place = Strategy::ALL.iter().position(|&s| s == strategy).unwrap_or(0);
    format!("s{place}")
}

fn plan(args: &CompareArgs, run: RunId, strategy: Strategy, n: u32) -> Plan {
    let fault = (args.widen_ms > 0).then(|| FaultSpec {
        point: "inventory.critical-section".to_owned(),
        effect: ticketing_types::Effect::Delay(Duration::from_millis(args.widen_ms)),
        percent: 100,
    });
    Plan {
        seed: args.seed.wrapping_add(u64::from(n)),
        payment_key: args.payment_key,
        capacity: args.capacity,
        buyers: args.buyers,
        storm: (!args.no_storm).then(StormPlan::default),
        fault,
        ..Plan::new(run, strategy)
    }
}

enum Played {
    Round(Box<RoundReport>, Timeline),
    Skipped(String),
}

async fn round(shop: &Shop, plan: &Plan, rounds: u32, n: u32) -> anyhow::Result<Played> {
    let progress = Progress::default();
    let ticker = tokio::spawn(tell(progress.clone(), plan.strategy, n, rounds));
    let played = play(shop, plan, &progress).await;
    ticker.abort();
    let played = played?;
    if let Played::Round(report, _) = &played {
        tell_line(&format!(
            "round {}/{rounds} {:<14} sold {}/{} oversold {} double charges {}  {:.1} s  {}",
            n + 1,
            plan.strategy.name(),
            report.sold,
            report.capacity,
            report.oversold,
            report.double_charged,
            report.wall_ms / 1000.0,
            report.verdict,
        ));
    }
    Ok(played)
}

async fn play(shop: &Shop, plan: &Plan, progress: &Progress) -> anyhow::Result<Played> {
    match shop.probe(plan).await {
        Ok(()) => {}
        Err(ShopError::StrategyUnavailable { detail }) => return Ok(Played::Skipped(detail)),
        Err(error) => return Err(error.into()),
    }
    shop.prepare(plan).await?;
    let burst = attack::burst(shop.base(), plan, progress).await?;
    let timeline = Timeline::of(plan, &burst.records);
    let storm: Vec<Record> = storm::release(shop, plan, progress).await;
    let evidence = Evidence::gather(shop, plan, burst, storm, progress).await;
    progress.enter(Phase::Done, 0);
    Ok(Played::Round(Box::new(judge::round(&evidence)), timeline))
}

/// Tells how far the round has come, twice a second, on one line of a terminal; a log gets only whole rounds.
#[allow(clippy::print_stderr)]
async fn tell(progress: Progress, strategy: Strategy, n: u32, rounds: u32) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    loop {
        let now = progress.now();
        let phase = format!("{:?}", now.phase).to_lowercase();
        eprint!(
            "\r\x1b[2Kround {}/{rounds} {strategy}: {phase} {}/{}",
            n + 1,
            now.answered,
            now.expected
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[allow(clippy::print_stderr)]
fn tell_line(text: &str) {
    let clear = if std::io::stderr().is_terminal() {
        "\r\x1b[2K"
    } else {
        ""
    };
    eprintln!("{clear}{text}");
}

fn threshold_missed(args: &CompareArgs, strategies: &[StrategyReport]) -> bool {
    args.max_p99_ms.is_some_and(|max| {
        strategies
            .iter()
            .any(|s| !s.rounds.is_empty() && s.medians.latency_ms.p99 > max)
    })
}
