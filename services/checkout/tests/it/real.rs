//! Checkout with the real inventory, billing and gateway, two instances each, and a lock node that the first
//! checkout hosts.

use std::collections::BTreeMap;

use checkout::Config;
use futures::future::join_all;
use lock_node::{Member, NodeConfig};
use reqwest::Method;
use serde_json::{Value, json};
use service_kit::{Running, http_client};
use tempfile::TempDir;
use testkit::{TestDb, eventually, for_each_engine, free_ports};
use ticketing_types::Strategy;
use tokio_util::sync::CancellationToken;

use crate::shop::{Answer, SOON, order};

/// Strategies that promise something and need nothing but the suite.
const PROMISING: [&str; 3] = ["raft", "atomic", "optimistic"];

struct Suite {
    checkout: Vec<Running>,
    others: Vec<Running>,
    gateway: String,
    inventory: String,
    shutdown: CancellationToken,
    _dir: TempDir,
    _db: TestDb,
}

fn urls(instances: &[Running]) -> Vec<String> {
    instances
        .iter()
        .map(|instance| format!("http://{}", instance.addr))
        .collect()
}

/// One member, which is a quorum.
fn lock_node(dir: &TempDir) -> (NodeConfig, String) {
    let ports = free_ports(2);
    let member = Member {
        id: 1,
        peer_addr: format!("127.0.0.1:{}", ports[0]),
        client_addr: format!("127.0.0.1:{}", ports[1]),
    };
    let url = member.client_url();
    let config = NodeConfig::member(1, &[member], dir.path().join("lock-node")).unwrap();
    (config, url)
}

impl Suite {
    async fn start(db: TestDb) -> Self {
        let (shutdown, dir) = (CancellationToken::new(), tempfile::tempdir().unwrap());
        let stop = || shutdown.clone();
        let (node, lock_url) = lock_node(&dir);
        let gateway = card_gateway::start(card_gateway::Config::new(db.url_for("gateway")), stop())
            .await
            .unwrap();
        let gateway_url = format!("http://{}", gateway.addr);
        let (mut inventory, mut billing, mut checkout) = (Vec::new(), Vec::new(), Vec::new());
        for n in 1..=2 {
            let config = inventory::Config {
                lock_urls: vec![lock_url.clone()],
                ..inventory::Config::new(format!("inventory-{n}"), db.url_for("inventory"))
            };
            inventory.push(inventory::start(config, stop()).await.unwrap());
            let config = billing::Config {
                instance: format!("billing-{n}"),
                lock_urls: vec![lock_url.clone()],
                ..billing::Config::new(db.url_for("billing"), &gateway_url)
            };
            billing.push(billing::start(config, stop()).await.unwrap());
        }
        for n in 1..=2 {
            let locks = vec![lock_url.clone()];
            let config = Config {
                instance: format!("checkout-{n}"),
                default_strategy: Strategy::Raft,
                embedded_node: (n == 1).then(|| node.clone()),
                ..Config::new(db.url_for("checkout"), urls(&inventory), urls(&billing), locks)
            };
            checkout.push(checkout::start(config, stop()).await.unwrap());
        }
        let suite = Self {
            gateway: gateway_url,
            inventory: urls(&inventory)[0].clone(),
            checkout,
            others: inventory.into_iter().chain(billing).chain([gateway]).collect(),
            shutdown,
            _dir: dir,
            _db: db,
        };
        eventually(SOON, "a leader of the lock cluster", async || {
            let ready = Answer::of(http_client().get(format!("{lock_url}/readyz"))).await;
            (ready.status == 200).then_some(())
        })
        .await;
        suite
    }

    async fn event(&self, id: &str, capacity: u32, more: Value) {
        let mut event = json!({
            "id": id, "name": id, "capacity": capacity, "price": { "amount_minor": 1000, "currency": "EUR" },
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let url = format!("{}/v1/events", self.inventory);
        let created = Answer::of(http_client().post(url).json(&event)).await;
        assert_eq!(created.status, 201, "{}", created.text);
    }

    async fn buy(&self, turn: usize, key: &str, strategy: &str, wish: &Value) -> Answer {
        let url = format!("{}/v1/purchases", urls(&self.checkout)[turn % 2]);
        let request = http_client().request(Method::POST, url).json(wish);
        Answer::of(
            request
                .header("idempotency-key", key)
                .header("lock-strategy", strategy),
        )
        .await
    }

    async fn sold(&self, event: &str) -> i64 {
        let url = format!("{}/v1/events/{event}", self.inventory);
        Answer::of(http_client().get(url)).await.json()["sold"]
            .as_i64()
            .unwrap()
    }

    /// What the gateway's ledger says of a purchase: captures, captured − refunded.
    async fn charged(&self, id: &str) -> (i64, i64) {
        let url = format!("{}/v1/ledger/lookup", self.gateway);
        let ledger = Answer::of(http_client().post(url).json(&json!({ "references": [id] })))
            .await
            .json();
        let totals = &ledger["totals"][0];
        let number = |name: &str| totals[name].as_i64().unwrap_or(0);
        (
            number("captures"),
            number("captured_minor") - number("refunded_minor"),
        )
    }

    async fn stop(self) {
        self.shutdown.cancel();
        // The host of the lock node last: the others still have sessions to close there.
        for instance in self.others.into_iter().chain(self.checkout.into_iter().rev()) {
            instance.join().await.unwrap();
        }
    }
}

fn cart(buyer: &str, event: &str, card: &str) -> Value {
    let mut wish = order(buyer, 1);
    wish["items"][0]["event_id"] = event.into();
    wish["card"] = card.into();
    wish
}

fn outcomes(answers: &[Answer]) -> BTreeMap<String, usize> {
    let mut outcomes = BTreeMap::new();
    for answer in answers {
        *outcomes
            .entry(format!("{} {}", answer.status, answer.slug()))
            .or_insert(0) += 1;
    }
    outcomes
}

for_each_engine! {
    async fn every_card_is_charged_once_or_not_at_all(db: TestDb) {
        let suite = Suite::start(db).await;
        suite.event("gala", 100, json!({})).await;
        for strategy in PROMISING {
            let cards = ["card_ok", "card_slow", "card_lost_reply", "card_flaky", "card_declined"];
            let buying = cards.into_iter().enumerate().map(|(turn, card)| {
                let key = format!("{strategy}-{card}");
                let suite = &suite;
                async move { (card, suite.buy(turn, &key, strategy, &cart("ann", "gala", card)).await) }
            });
            for (card, answer) in join_all(buying).await {
                let id = answer.id();
                match card {
                    "card_declined" => {
                        assert_eq!(answer.slug(), "payment-declined", "{strategy} {card}: {}", answer.text);
                        assert_eq!(suite.charged(&id).await, (0, 0), "{strategy} {card}");
                    }
                    _ => {
                        assert_eq!(answer.status, 201, "{strategy} {card}: {}", answer.text);
                        assert_eq!(suite.charged(&id).await, (1, 1000), "{strategy} {card}");
                    }
                }
            }
        }
        assert_eq!(suite.sold("gala").await, 12);
        suite.stop().await;
    }

    async fn the_last_ticket_is_sold_once(db: TestDb) {
        let suite = Suite::start(db).await;
        for strategy in PROMISING {
            suite.event(strategy, 1, json!({})).await;
            let burst = (0..20).map(|n| {
                let suite = &suite;
                async move {
                    let wish = cart(&format!("buyer-{n}"), strategy, "card_ok");
                    suite.buy(n, strategy, strategy, &wish).await
                }
            });
            let answers = join_all(burst).await;
            let outcomes = outcomes(&answers);
            assert_eq!(outcomes.get("201 "), Some(&1), "{strategy}: {outcomes:?}");
            assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 409 | 503)), "{outcomes:?}");
            assert_eq!(suite.sold(strategy).await, 1);
        }
        suite.stop().await;
    }

    async fn thirty_at_once_with_one_key_are_charged_once(db: TestDb) {
        let suite = Suite::start(db).await;
        suite.event("gala", 100, json!({})).await;
        for strategy in PROMISING {
            let wish = cart(strategy, "gala", "card_lost_reply");
            let storm = (0..30).map(|turn| suite.buy(turn, "k-1", strategy, &wish));
            let answers = join_all(storm).await;
            for answer in &answers {
                let expected = answer.status == 201 || answer.slug() == "purchase-in-progress";
                assert!(expected, "{strategy}: {} {}", answer.status, answer.text);
            }
            let bought = answers.iter().find(|answer| answer.status == 201).expect("one of them drove it");
            assert_eq!(suite.charged(&bought.id()).await, (1, 1000), "{strategy}");
            assert!(suite.buy(0, "k-1", strategy, &wish).await.replayed());
        }
        assert_eq!(suite.sold("gala").await, 3);
        suite.stop().await;
    }

    async fn what_inventory_refuses_is_answered_by_name(db: TestDb) {
        let suite = Suite::start(db).await;
        suite.event("limited", 100, json!({ "max_per_buyer": 2 })).await;
        suite.event("yen", 100, json!({ "price": { "amount_minor": 100, "currency": "JPY" } })).await;
        let dear = json!({ "price": { "amount_minor": i64::MAX, "currency": "EUR" } });
        suite.event("dear", 100, dear).await;
        let cart = |lines: &[(&str, i64)]| {
            let mut wish = order("ann", 1);
            let lines = lines.iter().map(|(event, quantity)| json!({ "event_id": event, "quantity": quantity }));
            wish["items"] = lines.collect();
            wish
        };
        for (key, lines, status, slug) in [
            // The same event on two lines counts as one.
            ("limit", &[("limited", 2), ("limited", 1)][..], 422, "limit-reached"),
            ("mixed", &[("limited", 1), ("yen", 1)], 422, "mixed-currencies"),
            ("nowhere", &[("limited", 1), ("nowhere", 1)], 422, "unknown-event"),
            ("dear", &[("dear", 2)], 400, "invalid-request"),
        ] {
            let answer = suite.buy(0, key, "raft", &cart(lines)).await;
            assert_eq!((answer.status, answer.slug().as_str()), (status, slug), "{}", answer.text);
            let again = suite.buy(1, key, "raft", &cart(lines)).await;
            assert_eq!((again.text, again.status), (answer.text, status));
        }
        let limit = suite.buy(0, "limit", "raft", &cart(&[("limited", 2), ("limited", 1)])).await.json();
        assert_eq!((&limit["event_id"], &limit["limit"]), (&json!("limited"), &json!(2)));
        let dear = suite.buy(0, "dear", "raft", &cart(&[("dear", 2)])).await.json();
        assert_eq!(dear["errors"][0]["pointer"], "/items");
        assert_eq!(suite.buy(0, "right", "raft", &cart(&[("limited", 2)])).await.status, 201);
        suite.stop().await;
    }

    async fn a_cancelled_purchase_is_refunded_by_the_gateway(db: TestDb) {
        let suite = Suite::start(db).await;
        suite.event("gala", 1, json!({})).await;
        let id = suite.buy(0, "k-1", "raft", &cart("ann", "gala", "card_ok")).await.id();
        assert_eq!(suite.charged(&id).await, (1, 1000));
        let cancel = |turn: usize| {
            let url = format!("{}/v1/purchases/{id}/cancel", urls(&suite.checkout)[turn]);
            Answer::of(http_client().post(url))
        };
        for turn in [0, 1] {
            let cancelled = cancel(turn).await;
            assert_eq!((cancelled.status, cancelled.json()["status"].as_str()), (200, Some("cancelled")));
        }
        assert_eq!(suite.charged(&id).await, (1, 0));
        assert_eq!(suite.sold("gala").await, 1);
        assert_eq!(suite.buy(0, "k-2", "raft", &cart("bob", "gala", "card_ok")).await.slug(), "sold-out");
        suite.stop().await;
    }
}
