//! The front door, asked by hand, for requests that a well-behaved buyer would never send; and the books behind
//! it, read where they are kept. A test that believed the audit alone would test the audit.

use std::collections::BTreeMap;
use std::time::Duration;

use buyers::Shop;
use last_ticket::Ports;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::eventually;
use ticketing_types::audit::{AuditReport, Verdict};
use ticketing_types::checkout::CheckoutRecords;
use ticketing_types::gateway::{Ledger, LedgerLookup, LedgerTotals};
use ticketing_types::{EventId, PaymentId};

/// Longer than any answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// What one request got.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    /// The slug of a problem; empty when it is none.
    pub(crate) fn slug(&self) -> &str {
        let slug = |body: &Value| body["type"].as_str()?.strip_prefix("/problems/").map(str::len);
        let len = slug(&self.body).unwrap_or(0);
        let text = self.body["type"].as_str().unwrap_or_default();
        &text[text.len() - len..]
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    /// A problem of this kind, told as one should be (RFC 9457).
    #[track_caller]
    pub(crate) fn problem(self, status: u16, slug: &str) -> Self {
        assert_eq!((self.status, self.slug()), (status, slug), "{}", self.body);
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{}",
            self.body
        );
        assert_eq!(self.body["status"], status, "{}", self.body);
        assert!(self.body["title"].is_string(), "{}", self.body);
        self
    }
}

/// Where to ask.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) shop: Shop,
    http: reqwest::Client,
    ports: Ports,
}

impl Door {
    pub(crate) fn at(ports: &Ports) -> Self {
        Self {
            shop: Shop::new(&on(ports.front_door)).unwrap(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            ports: ports.clone(),
        }
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// A request to the front door.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_on(self.ports.front_door, method, path)
    }

    /// A request to whoever listens on this port.
    pub(crate) fn request_on(&self, port: u16, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", on(port)))
            .timeout(ANSWER_WITHIN)
    }

    /// A purchase as the API's users write it, under this key.
    pub(crate) fn purchase(&self, key: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, "/v1/purchases")
            .header("idempotency-key", key)
            .json(body)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        send(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        send(self.request(Method::GET, path)).await
    }

    /// Creates an event; tickets cost 50.00 EUR.
    pub(crate) async fn event(&self, id: &str, capacity: u32) -> EventId {
        let id = EventId::parse(id).unwrap();
        self.shop.create_event(&id, "A show", capacity).await.unwrap();
        id
    }

    /// Creates an event that differs from the usual in these members.
    pub(crate) async fn event_with(&self, id: &str, members: Value) -> EventId {
        let mut event = json!({
            "id": id, "name": "A show", "capacity": 10, "price": { "amount_minor": 5000, "currency": "EUR" }
        });
        for (name, value) in members.as_object().unwrap() {
            event[name] = value.clone();
        }
        self.post("/v1/events", &event).await.is(201);
        EventId::parse(id).unwrap()
    }

    /// Waits until no purchase of this event is pending and no hold stands, then reads the audit.
    pub(crate) async fn at_rest(&self, event: &EventId, within: Duration) -> AuditReport {
        let mut last = None;
        let rest = eventually(2 * within, "rest", async || {
            let audit = self.shop.audit(event).await.ok()?;
            let known = audit.verdict != Verdict::Unknown;
            let at_rest = known && audit.purchases.pending == 0 && audit.held == 0;
            last = Some(audit.clone());
            at_rest.then_some(audit)
        });
        // Stopped before it gives up by itself, to say what it saw last.
        let rest = tokio::time::timeout(within, rest).await;
        rest.unwrap_or_else(|_| panic!("{event} did not come to rest within {within:?}: {last:#?}"))
    }

    /// Nothing of this event was ever held, sold or charged.
    pub(crate) async fn assert_untouched(&self, event: &EventId) {
        let audit = self.at_rest(event, Duration::from_secs(20)).await;
        assert_kept(&audit);
        let numbers = (audit.available, audit.held, audit.sold, audit.charged);
        assert_eq!(numbers, (audit.capacity, 0, 0, 0), "{audit:?}");
        let charges = self.charges_by_key(event).await;
        assert!(
            charges.values().all(|&captures| captures == 0),
            "{event}: {charges:?}"
        );
    }

    /// Checkout's own book of an event.
    pub(crate) async fn checkout_book(&self, event: &EventId) -> CheckoutRecords {
        let path = format!("/v1/audit-records/{event}");
        read(
            send(self.request_on(self.ports.checkout[0], Method::GET, &path))
                .await
                .is(200),
        )
    }

    /// What the card gateway's ledger says of these payments.
    pub(crate) async fn ledger(&self, references: Vec<PaymentId>) -> Vec<LedgerTotals> {
        let lookup = self.request_on(self.ports.gateway, Method::POST, "/v1/ledger/lookup");
        let lookup = lookup.json(&LedgerLookup { references });
        let ledger: Ledger = read(send(lookup).await.is(200));
        ledger.totals
    }

    /// How often each buyer of this event was charged per key, by checkout's book and the gateway's ledger.
    pub(crate) async fn charges_by_key(&self, event: &EventId) -> BTreeMap<(String, String), i64> {
        let book = self.checkout_book(event).await;
        let totals = self
            .ledger(
                book.purchases
                    .iter()
                    .map(|purchase| purchase.id.payment())
                    .collect(),
            )
            .await;
        let mut charges = BTreeMap::new();
        for purchase in book.purchases {
            let captures = totals
                .iter()
                .find(|t| t.reference == purchase.id.payment())
                .map_or(0, |t| t.captures);
            *charges
                .entry((purchase.buyer.to_string(), purchase.idempotency_key))
                .or_insert(0) += captures;
        }
        charges
    }

    /// Which member of the lock cluster leads, once one does.
    pub(crate) async fn lock_leader(&self) -> u64 {
        eventually(
            Duration::from_secs(20),
            "the lock cluster to have a leader",
            async || self.get("/v1/topology").await.body["cluster"]["leader"].as_u64(),
        )
        .await
    }
}

fn on(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Sends a request and reads the answer; anything that is no JSON is read as null.
pub(crate) async fn send(request: RequestBuilder) -> Reply {
    try_send(request).await.expect("an answer")
}

/// The same where nobody may be there.
pub(crate) async fn try_send(request: RequestBuilder) -> Option<Reply> {
    let response = request.send().await.ok()?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.ok()?;
    Some(Reply {
        status,
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}

fn read<T: DeserializeOwned>(reply: Reply) -> T {
    serde_json::from_value(reply.body).expect("a body of the type that both share")
}

/// Every promise kept, by an audit that could read every book.
#[track_caller]
pub(crate) fn assert_kept(audit: &AuditReport) {
    let broken: Vec<_> = audit
        .invariants
        .iter()
        .filter(|(_, i)| i.verdict != Verdict::Pass)
        .collect();
    assert!(
        broken.is_empty() && audit.verdict == Verdict::Pass,
        "{broken:#?}\n{audit:?}"
    );
    let wrong = [
        audit.oversold,
        audit.undersold,
        audit.double_charged,
        audit.charged_without_ticket,
        audit.ticket_without_charge,
    ];
    assert_eq!(wrong, [0; 5], "{audit:?}");
}
