//! Checkout instances over one database, and a buyer in front of them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use checkout::{Config, start};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use service_kit::{Running, http_client};
use testkit::TestDb;
use ticketing_types::Strategy;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// How long a test waits for what should come at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Instances of checkout, and whom they ask.
pub(crate) struct Shop {
    pub(crate) world: World,
    _db: TestDb,
    instances: Vec<Running>,
    http: reqwest::Client,
    next: AtomicUsize,
    shutdown: CancellationToken,
}

/// What the buyer was answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.expect("a body"),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The last segment of the problem's type.
    pub(crate) fn slug(&self) -> String {
        let body = self.json();
        body["type"]
            .as_str()
            .unwrap_or_default()
            .replace("/problems/", "")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn id(&self) -> String {
        let body = self.json();
        let id = body["id"].as_str().or(body["purchase_id"].as_str());
        id.expect("an id").to_owned()
    }

    pub(crate) fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }
}

/// As the tests want it: no lock cluster, and no patience.
pub(crate) fn config(db: &TestDb, world: &World) -> Config {
    let mut config = Config::new(db.url(), vec![world.url.clone()], vec![world.url.clone()], vec![]);
    config.default_strategy = Strategy::Atomic;
    config.lock_wait = Duration::from_secs(5);
    config.enable_faults = true;
    config.recovery_every = Duration::from_millis(50);
    config
}

/// A cart of tickets for the gala.
pub(crate) fn order(buyer: &str, quantity: i64) -> Value {
    json!({ "buyer": buyer, "card": "card_ok", "items": [{ "event_id": "gala", "quantity": quantity }] })
}

impl Shop {
    /// One instance and this many seats.
    pub(crate) async fn open(db: TestDb, stock: i64) -> Self {
        Self::open_with(db, stock, 1, |_| {}).await
    }

    /// Several instances, configured as the test needs it.
    pub(crate) async fn open_with(
        db: TestDb,
        stock: i64,
        instances: usize,
        adjust: impl Fn(&mut Config),
    ) -> Self {
        let world = World::with_stock(stock).await;
        let shutdown = CancellationToken::new();
        let mut running = Vec::new();
        for n in 1..=instances {
            let mut config = config(&db, &world);
            config.instance = format!("checkout-{n}");
            adjust(&mut config);
            running.push(start(config, shutdown.clone()).await.expect("checkout starts"));
        }
        Self {
            world,
            _db: db,
            instances: running,
            http: http_client(),
            next: AtomicUsize::new(0),
            shutdown,
        }
    }

    /// A request to one of the instances, in turn.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let turn = self.next.fetch_add(1, Relaxed) % self.instances.len();
        self.http
            .request(method, format!("http://{}{path}", self.instances[turn].addr))
    }

    /// `POST /v1/purchases`, to be adorned and sent.
    pub(crate) fn buying(&self, key: &str, order: &Value) -> RequestBuilder {
        let request = self.request(Method::POST, "/v1/purchases").json(order);
        request.header("idempotency-key", key)
    }

    pub(crate) async fn buy(&self, key: &str, order: &Value) -> Answer {
        Answer::of(self.buying(key, order)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Answer {
        Answer::of(self.request(Method::POST, &format!("/v1/purchases/{id}/cancel"))).await
    }

    pub(crate) async fn status(&self, id: &str) -> String {
        let answer = self.get(&format!("/v1/purchases/{id}")).await;
        answer.json()["status"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the purchase stands like this.
    pub(crate) async fn wait_for_status(&self, id: &str, status: &str) {
        testkit::eventually(SOON, status, async || {
            (self.status(id).await == status).then_some(())
        })
        .await;
    }

    /// Stops all instances.
    pub(crate) async fn close(self) {
        self.shutdown.cancel();
        for instance in self.instances {
            instance.join().await.expect("no part of it panicked");
        }
    }
}
