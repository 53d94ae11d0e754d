//! The program is killed at each of its fault points, between a step and its record, and started again.

use reqwest::Method;
use serde_json::Value;
use service_kit::http_client;
use testkit::{Program, TestDb, for_each_engine};

use crate::shop::{Answer, SOON, order};
use crate::world::World;

fn start(db: &TestDb, world: &World) -> Program {
    let args = [
        ("--listen", "127.0.0.1:0"),
        ("--database-url", db.url()),
        ("--inventory-urls", &world.url),
        ("--billing-urls", &world.url),
        ("--strategy", "atomic"),
        ("--recovery-stale-ms", "500"),
        ("--recovery-every-ms", "50"),
    ];
    let args = args.into_iter().flat_map(|(flag, value)| [flag, value]);
    Program::start("checkout", "checkout", args.chain(["--enable-faults"]))
}

fn buying(url: &str, key: &str, order: &Value) -> reqwest::RequestBuilder {
    let request = http_client().request(Method::POST, format!("{url}/v1/purchases"));
    request.header("idempotency-key", key).json(order)
}

for_each_engine! {
    async fn killed_after_any_step_the_purchase_is_finished_without_the_client(db: TestDb) {
        let world = World::with_stock(10).await;
        let points = ["critical-section", "after-hold", "after-authorize", "after-confirm", "after-capture"];
        for (n, point) in points.into_iter().enumerate() {
            let mut program = start(&db, &world);
            let url = program.ready(SOON).await;
            let wish = order(point, 1);
            let fault = format!("checkout.{point}=exit");
            let lost = buying(&url, "k-1", &wish).header("fault", fault).send().await;
            assert!(lost.is_err(), "{point}: {lost:?}");
            assert!(!program.wait(SOON).await.success());

            let mut program = start(&db, &world);
            let url = program.ready(SOON).await;
            if point == "critical-section" {
                // Nothing was written: there is nothing to finish, and the key is free.
                assert_eq!(Answer::of(buying(&url, "k-1", &wish)).await.status, 201);
            } else {
                // Nobody asks for the purchase; it is finished all the same.
                testkit::eventually(SOON, "a capture", async || {
                    (world.captures() == n as i64 + 1).then_some(())
                })
                .await;
                let replay = testkit::eventually(SOON, "the answer", async || {
                    let answer = Answer::of(buying(&url, "k-1", &wish)).await;
                    (answer.slug() != "purchase-in-progress").then_some(answer)
                })
                .await;
                assert_eq!((replay.status, replay.replayed()), (201, true), "{point}: {}", replay.text);
            }
            assert_eq!((world.sold(), world.captures()), (n as i64 + 1, n as i64 + 1), "{point}");
            assert!(program.terminate(SOON).await.success());
        }
        world.assert_at_rest();
    }
}
