//! What the tests share: instances of the service over one database, and a client that reads problems.

use std::time::Duration;

use futures::future::join_all;
use inventory::Config;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use service_kit::Running;
use testkit::TestDb;
use ticketing_types::Strategy;
use tokio_util::sync::CancellationToken;

/// Running instances of inventory.
pub(crate) struct Shop {
    pub(crate) urls: Vec<String>,
    pub(crate) client: Client,
    shutdown: CancellationToken,
    instances: Vec<Running>,
}

/// An answer, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) retry_after: bool,
}

impl Reply {
    /// The slug of a problem; empty for anything else.
    pub(crate) fn slug(&self) -> &str {
        self.body["type"]
            .as_str()
            .and_then(|kind| kind.strip_prefix("/problems/"))
            .unwrap_or_default()
    }

    /// Fails unless this is a problem with that status and slug.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, slug: &str) {
        assert_eq!((self.status, self.slug()), (status, slug), "{}", self.body);
        assert_eq!(self.body["status"], status);
    }

    /// Fails unless this has that status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Value {
        assert_eq!(self.status, status, "{}", self.body);
        &self.body
    }
}

impl Shop {
    /// Opens `instances` instances with faults enabled and no lock cluster.
    pub(crate) async fn open(db: &TestDb, instances: usize) -> Self {
        Self::open_with(db, instances, |_| {}).await
    }

    /// The same, with other settings.
    pub(crate) async fn open_with(db: &TestDb, instances: usize, adjust: impl Fn(&mut Config)) -> Self {
        let shutdown = CancellationToken::new();
        let mut running = Vec::new();
        for number in 1..=instances {
            let mut config = Config::new(format!("inventory-{number}"), db.url());
            config.default_strategy = Strategy::Atomic;
            config.enable_faults = true;
            config.expiry_every = Duration::from_millis(50);
            adjust(&mut config);
            running.push(
                inventory::start(config, shutdown.clone())
                    .await
                    .expect("an instance starts"),
            );
        }
        Self {
            urls: running
                .iter()
                .map(|instance| format!("http://{}", instance.addr))
                .collect(),
            client: Client::builder()
                .timeout(Duration::from_secs(60))
                .build()
                .expect("a client"),
            shutdown,
            instances: running,
        }
    }

    /// Stops all instances, and fails if one had broken.
    pub(crate) async fn close(self) {
        drop(self.client);
        self.shutdown.cancel();
        for instance in self.instances {
            instance.join().await.expect("an instance stops cleanly");
        }
    }

    /// Sends a request to instance `at` (counted from 0, and round again).
    pub(crate) async fn send(
        &self,
        at: usize,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Reply {
        let url = format!("{}{path}", self.urls[at % self.urls.len()]);
        let mut request = self.client.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        read(request).await
    }

    /// Creates an event, for 25.00 EUR a ticket.
    pub(crate) async fn event(&self, id: &str, capacity: u32) -> Value {
        self.event_with(json!({ "id": id, "capacity": capacity })).await
    }

    /// Creates an event with these members and the usual others.
    pub(crate) async fn event_with(&self, members: Value) -> Value {
        let mut body = json!({ "name": "A show", "price": { "amount_minor": 2500, "currency": "EUR" } });
        for (name, value) in members.as_object().expect("an object") {
            body[name] = value.clone();
        }
        self.send(0, Method::POST, "/v1/events", &[], Some(&body))
            .await
            .is(201)
            .clone()
    }

    /// Asks instance `at` for a hold.
    pub(crate) async fn place(&self, at: usize, id: &str, body: &Value, strategy: Strategy) -> Reply {
        let headers = [("lock-strategy", strategy.name())];
        self.send(at, Method::PUT, &format!("/v1/holds/{id}"), &headers, Some(body))
            .await
    }

    pub(crate) async fn confirm(&self, at: usize, id: &str) -> Reply {
        self.send(at, Method::POST, &format!("/v1/holds/{id}/confirm"), &[], None)
            .await
    }

    pub(crate) async fn release(&self, at: usize, id: &str) -> Reply {
        self.send(at, Method::DELETE, &format!("/v1/holds/{id}"), &[], None)
            .await
    }

    /// The event as it is now.
    pub(crate) async fn stock(&self, event: &str) -> Stock {
        let reply = self
            .send(0, Method::GET, &format!("/v1/events/{event}"), &[], None)
            .await;
        let body = reply.is(200);
        let number = |name: &str| body[name].as_i64().expect("a number");
        Stock {
            capacity: number("capacity"),
            available: number("available"),
            held: number("held"),
            sold: number("sold"),
            oversold: number("oversold"),
        }
    }

    /// How often something happened at the critical section's fault point of instance `at`.
    pub(crate) async fn fired(&self, at: usize) -> u64 {
        let faults = self.send(at, Method::GET, "/v1/faults", &[], None).await;
        let points = faults.is(200)["points"].as_array().expect("a list");
        let mut at_section = points
            .iter()
            .filter(|point| point["point"] == "inventory.critical-section");
        at_section.next().expect("the point")["fired"]
            .as_u64()
            .expect("a count")
    }

    /// Inventory's book of the event.
    pub(crate) async fn records(&self, event: &str) -> Value {
        let reply = self
            .send(0, Method::GET, &format!("/v1/audit-records/{event}"), &[], None)
            .await;
        reply.is(200).clone()
    }

    /// Lets `buyers` buyers want one ticket each, all at once, spread over the instances; those who get a hold
    /// confirm it. Answers what the holds were answered.
    pub(crate) async fn burst(&self, event: &str, buyers: usize, strategy: Strategy) -> Vec<Reply> {
        join_all((0..buyers).map(|number| async move {
            let id = format!("{event}-{number}");
            let reply = self
                .place(
                    number,
                    &id,
                    &cart(&format!("buyer-{number}"), &[(event, 1)]),
                    strategy,
                )
                .await;
            if reply.status == 201 {
                self.confirm(number + 1, &id).await.is(200);
            }
            reply
        }))
        .await
    }
}

/// The numbers of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) capacity: i64,
    pub(crate) available: i64,
    pub(crate) held: i64,
    pub(crate) sold: i64,
    pub(crate) oversold: i64,
}

impl Stock {
    /// I1, and nothing oversold.
    #[track_caller]
    pub(crate) fn adds_up(&self) {
        assert_eq!(self.capacity, self.available + self.held + self.sold, "{self:?}");
        assert!(self.available >= 0 && self.oversold == 0, "{self:?}");
    }
}

/// The body of a PUT.
pub(crate) fn cart(buyer: &str, items: &[(&str, u32)]) -> Value {
    let items: Vec<_> = items
        .iter()
        .map(|(event_id, quantity)| json!({ "event_id": event_id, "quantity": quantity }))
        .collect();
    json!({ "buyer": buyer, "items": items })
}

/// The same, for a hold that lasts `ttl_ms`.
pub(crate) fn cart_for(ttl_ms: u32, buyer: &str, items: &[(&str, u32)]) -> Value {
    let mut body = cart(buyer, items);
    body["ttl_ms"] = ttl_ms.into();
    body
}

pub(crate) async fn read(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let retry_after = response.headers().contains_key("retry-after");
    let text = response.text().await.expect("a whole body");
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Reply {
        status,
        body,
        retry_after,
    }
}

/// How many replies had each outcome: "201", "409 sold-out".
pub(crate) fn outcomes(replies: &[Reply]) -> std::collections::BTreeMap<String, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for reply in replies {
        *counts
            .entry(format!("{} {}", reply.status, reply.slug()).trim().to_owned())
            .or_insert(0) += 1;
    }
    counts
}
