//! The people in front of the box office: a burst of buyers, the retry storm after it, and the judgement.
//!
//! Two callers share this code, so that they cannot disagree about what a round is: the load test (which
//! lets goose release the burst) and the front door (`POST /v1/rounds`, plain [`reqwest`]). A round is
//!
//! ```text
//! prepare   a fresh event, and a second one for the storm                        Shop::prepare
//! burst     N buyers, each its own card and key, released together, once         burst::release   (or goose)
//! storm     the same purchase three times in parallel with one key;              storm::release
//!           buyers whose card loses the reply, who lose patience and ask again
//! rest      until no purchase is pending and no hold stands                      Shop::wait_for_rest
//! check     the audit of both events; every 201 that a buyer saw, asked for again   Shop::audit, Shop::check_kept
//! judge     what it means                                                        judge::round
//! ```
//!
//! [`round::run`] does all of it. Who brings an own load generator runs the steps itself and only replaces the
//! burst: [`Order::dress`] puts body and headers on any `reqwest::RequestBuilder`, [`Answer::read`] reads what
//! came back, a [`Record`] is one of each with its times.
//!
//! The storm has an event of its own with plenty of stock. After the burst the first one is sold out, and a
//! purchase that is refused before it pays cannot be charged twice: there would be nothing to see.
//!
//! Everything is drawn from a seed: who buys, with which card, under which key. What a seed cannot repeat is
//! the race itself: that is up to the machine.
//!
//! [`judge`] is pure. It reads the records and the audit and knows what each strategy promises: `raft` that
//! breaks a promise *fails*; `none`, which promises nothing, *reproduces the race*. What could not be read is
//! *unknown*, never passed.
//!
//! # For a caller with its own load generator
//!
//! ```no_run
//! use buyers::{Evidence, Plan, Progress, RunId, Shop, judge, storm};
//! # async fn goose(_: &Plan, _: &Progress) -> buyers::Burst { unimplemented!() }
//! # async fn round() -> Result<(), buyers::ShopError> {
//! let shop = Shop::new("http://127.0.0.1:8080")?;
//! let plan = Plan { seed: 7, ..Plan::new(RunId::fresh(), ticketing_types::Strategy::Raft) };
//! let progress = Progress::default();
//! shop.probe(&plan).await?; // Err(ShopError::StrategyUnavailable { .. }) → StrategyReport::skipped(..)
//! shop.prepare(&plan).await?;
//! let burst = goose(&plan, &progress).await;
//! let storm = storm::release(&shop, &plan, &progress).await;
//! let evidence = Evidence::gather(&shop, &plan, burst, storm, &progress).await;
//! let report = judge::round(&evidence);
//! println!("{}: {:?}", report.seed, report.verdict);
//! # Ok(()) }
//! ```

pub mod answer;
pub mod burst;
pub mod evidence;
pub mod judge;
pub mod order;
pub mod plan;
pub mod progress;
pub mod report;
pub mod round;
pub mod seed;
pub mod shop;
pub mod stats;
pub mod storm;

pub use answer::{Answer, Record};
pub use burst::Burst;
pub use evidence::{Evidence, Kept};
pub use order::Order;
pub use plan::{Plan, RunId, StormPlan};
pub use progress::{Phase, Progress, RoundProgress};
pub use report::{Medians, RoundReport, StormReport, StrategyReport, StrategyVerdict};
pub use seed::Seed;
pub use shop::{Shop, ShopError};
