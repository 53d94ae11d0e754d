//! A whole round, with plain HTTP.

use crate::{Evidence, Phase, Plan, Progress, RoundReport, Shop, ShopError, burst, judge, storm};

/// Runs one round and judges it. An error means that it could not even begin.
///
/// Dropping the future ends the buyers; what they had begun, the suite's recovery finishes.
pub async fn run(shop: &Shop, plan: &Plan, progress: &Progress) -> Result<RoundReport, ShopError> {
    progress.enter(Phase::Preparing, 0);
    shop.probe(plan).await?;
    shop.prepare(plan).await?;
    let burst = burst::release(shop, plan, progress).await;
    let storm = storm::release(shop, plan, progress).await;
    let evidence = Evidence::gather(shop, plan, burst, storm, progress).await;
    let report = judge::round(&evidence);
    progress.enter(Phase::Done, 0);
    Ok(report)
}
