//! Whole rounds against a toy shop: one that keeps its promises, and three that break one each.

mod toy;

use std::time::Duration;

use buyers::{Plan, Progress, RoundReport, RunId, Shop, StormPlan, StrategyVerdict, round};
use ticketing_types::Strategy;
use toy::{Defect, ToyShop};

fn plan(strategy: Strategy) -> Plan {
    Plan {
        capacity: 5,
        buyers: 40,
        storm: Some(StormPlan {
            triples: 4,
            lost_replies: 3,
        }),
        request_timeout: Duration::from_secs(10),
        rest_timeout: Duration::from_secs(10),
        ..Plan::new(RunId::named("test"), strategy)
    }
}

async fn run(strategy: Strategy, defect: Option<Defect>) -> (RoundReport, Progress) {
    let toy = ToyShop::start(defect).await;
    let shop = Shop::new(&toy.base()).expect("a client");
    let progress = Progress::default();
    let report = round::run(&shop, &plan(strategy), &progress)
        .await
        .expect("a round");
    (report, progress)
}

#[tokio::test]
async fn an_honest_shop_passes() {
    let (report, progress) = run(Strategy::Raft, None).await;
    assert_eq!(report.verdict, StrategyVerdict::Pass, "{}", report.reason);
    assert_eq!((report.sold, report.oversold, report.double_charged), (5, 0, 0));
    assert_eq!(report.outcomes["201"], 5);
    assert_eq!(report.outcomes["409 sold-out"], 35);
    let storm = report.storm.expect("a storm");
    assert_eq!(storm.sold, 7, "one ticket per key: {:?}", storm.outcomes);
    assert_eq!(storm.wrong_duplicates, 0);
    assert!(
        storm.requests >= 4 * 3 + 3 * 2,
        "who lost the reply asks again: {}",
        storm.requests
    );
    assert_eq!(progress.now().phase, buyers::Phase::Done);
    assert_eq!(progress.now().outcomes, report.outcomes);
}

#[tokio::test]
async fn a_shop_that_forgets_to_count_oversells() {
    let (report, _) = run(Strategy::None, Some(Defect::SellsForever)).await;
    assert_eq!(report.verdict, StrategyVerdict::RaceReproduced);
    assert_eq!(report.oversold, 35);
}

#[tokio::test]
async fn a_shop_that_forgets_keys_is_caught_in_the_storm() {
    let (report, _) = run(Strategy::Raft, Some(Defect::ForgetsKeys)).await;
    assert_eq!(report.verdict, StrategyVerdict::Fail);
    let storm = report.storm.expect("a storm");
    assert!(
        storm.wrong_duplicates >= 4 * 2,
        "each triple was sold three times: {storm:?}"
    );
}

#[tokio::test]
async fn a_shop_that_loses_a_sale_is_caught_by_asking_again() {
    let (report, _) = run(Strategy::Raft, Some(Defect::LosesASale)).await;
    assert_eq!(report.verdict, StrategyVerdict::Fail);
    assert_eq!(report.lost_201, 1);
}

#[tokio::test]
async fn a_strategy_that_is_not_there_is_no_failure() {
    let toy = ToyShop::start(Some(Defect::HasNoSuchStrategy)).await;
    let shop = Shop::new(&toy.base()).expect("a client");
    let error = round::run(&shop, &plan(Strategy::Redis), &Progress::default())
        .await
        .expect_err("nothing to run");
    assert!(
        matches!(error, buyers::ShopError::StrategyUnavailable { .. }),
        "{error}"
    );
}
