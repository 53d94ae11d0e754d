//! A gateway, two instances of billing over one database, and calls to them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use billing::Config;
use lock_node::{Member, NodeConfig};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use service_kit::Running;
use testkit::TestDb;
use tokio_util::sync::CancellationToken;

/// Longest wait for anything that should happen soon.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) gateway_url: String,
    pub(crate) urls: Vec<String>,
    pub(crate) http: reqwest::Client,
    next: AtomicUsize,
    shutdown: CancellationToken,
    running: Vec<Running>,
    /// The lock node's files.
    _node_dir: Option<tempfile::TempDir>,
}

impl World {
    /// Two instances without a lock cluster, whose worker does not interfere.
    pub(crate) async fn start(db: &TestDb) -> Self {
        Self::start_with(db, |_| {}).await
    }

    pub(crate) async fn start_with(db: &TestDb, change: impl Fn(&mut Config)) -> Self {
        let shutdown = CancellationToken::new();
        let gateway = card_gateway::Config {
            enable_faults: true,
            ..card_gateway::Config::new(db.url_for("gateway"))
        };
        let gateway = card_gateway::start(gateway, shutdown.clone())
            .await
            .expect("the gateway starts");
        let gateway_url = format!("http://{}", gateway.addr);
        let (mut urls, mut running) = (Vec::new(), vec![gateway]);
        for instance in 1..=2 {
            let mut config = Config {
                instance: format!("billing-{instance}"),
                enable_faults: true,
                settle_after: Duration::from_secs(600),
                ..Config::new(db.url_for("billing"), &gateway_url)
            };
            change(&mut config);
            let billing = billing::start(config, shutdown.clone())
                .await
                .expect("billing starts");
            urls.push(format!("http://{}", billing.addr));
            running.push(billing);
        }
        Self {
            gateway_url,
            urls,
            http: service_kit::http_client(),
            next: AtomicUsize::new(0),
            shutdown,
            running,
            _node_dir: None,
        }
    }

    /// Two instances, of which the first hosts the only member of a lock cluster.
    pub(crate) async fn start_with_cluster(db: &TestDb) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ports = testkit::free_ports(2);
        let [client_addr, peer_addr] = [ports[0], ports[1]].map(|port| format!("127.0.0.1:{port}"));
        let member = Member {
            id: 1,
            peer_addr,
            client_addr,
        };
        let node_url = member.client_url();
        let node = NodeConfig::member(1, &[member], dir.path()).expect("addresses");
        let mut world = Self::start_with(db, |config| {
            config.lock_urls = vec![node_url.clone()];
            config.session_ttl = Duration::from_secs(1);
            config.embedded_node = (config.instance == "billing-1").then(|| node.clone());
        })
        .await;
        world._node_dir = Some(dir);
        testkit::wait_ready(SOON, &node_url).await;
        world
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        // The first instance may host the lock node that the second one still needs for its goodbye.
        for running in self.running.into_iter().rev() {
            running.join().await.expect("stops well");
        }
    }

    /// A call to one instance after the other, as a balancer would.
    pub(crate) fn call(&self, method: Method, path: &str) -> RequestBuilder {
        let at = self.next.fetch_add(1, Relaxed);
        self.http
            .request(method, format!("{}{path}", self.urls[at % self.urls.len()]))
    }

    pub(crate) fn put(&self, id: &str, card: &str) -> RequestBuilder {
        self.call(Method::PUT, &format!("/v1/payments/{id}"))
            .json(&payment(card))
    }

    pub(crate) fn capture(&self, id: &str) -> RequestBuilder {
        self.call(Method::POST, &format!("/v1/payments/{id}/capture"))
    }

    pub(crate) fn void(&self, id: &str) -> RequestBuilder {
        self.call(Method::POST, &format!("/v1/payments/{id}/void"))
    }

    pub(crate) fn refund(&self, id: &str, refund_id: &str, amount_minor: i64) -> RequestBuilder {
        let body = json!({"id": refund_id, "amount": eur(amount_minor)});
        self.call(Method::POST, &format!("/v1/payments/{id}/refunds"))
            .json(&body)
    }

    pub(crate) async fn get(&self, id: &str) -> Answer {
        self.call(Method::GET, &format!("/v1/payments/{id}"))
            .answer()
            .await
    }

    /// A payment that is captured.
    pub(crate) async fn captured(&self, id: &str) {
        let strategy = "atomic";
        let authorized = self
            .put(id, "card_ok")
            .header("lock-strategy", strategy)
            .answer()
            .await;
        assert_eq!(authorized.status, 201, "{authorized:?}");
        let captured = self.capture(id).header("lock-strategy", strategy).answer().await;
        assert_eq!(captured.status, 200, "{captured:?}");
    }

    /// What the gateway says: it alone knows what was charged.
    pub(crate) async fn ledger(&self, id: &str) -> Totals {
        let url = format!("{}/v1/ledger/lookup", self.gateway_url);
        let ledger = self
            .http
            .post(url)
            .json(&json!({"references": [id]}))
            .answer()
            .await;
        let totals = &ledger.body["totals"][0];
        let number = |name: &str| totals[name].as_i64().unwrap_or_default();
        Totals {
            authorizations: number("authorizations"),
            captures: number("captures"),
            captured_minor: number("captured_minor"),
            refunded_minor: number("refunded_minor"),
        }
    }

    /// Arms a fault of the gateway for everybody, or disarms it.
    pub(crate) async fn gateway_fault(&self, point: &str, effect: Option<&str>) {
        let url = format!("{}/v1/faults/{point}", self.gateway_url);
        let request = match effect {
            Some(effect) => self.http.put(url).json(&json!({"effect": effect})),
            None => self.http.delete(url),
        };
        let response = request.send().await.expect("an answer");
        assert!(response.status().is_success(), "{response:?}");
    }

    /// The gateway charges nothing and gives nothing back, of this payment only.
    pub(crate) async fn gateway_refuses(&self, payment: &str) {
        let url = format!("{}/v1/faults/gateway.before-charge", self.gateway_url);
        let rule = json!({"effect": "error=503", "scope": payment});
        let response = self.http.put(url).json(&rule).send().await.expect("an answer");
        assert!(response.status().is_success(), "{response:?}");
    }
}

/// What the gateway's ledger adds up to.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub(crate) authorizations: i64,
    pub(crate) captures: i64,
    pub(crate) captured_minor: i64,
    pub(crate) refunded_minor: i64,
}

/// One authorization and one capture of the usual amount.
pub(crate) const ONCE: Totals = Totals {
    authorizations: 1,
    captures: 1,
    captured_minor: 500,
    refunded_minor: 0,
};

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    async fn read(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.json().await.expect("a JSON body");
        Self {
            status,
            headers,
            body,
        }
    }

    /// (status, slug of the problem).
    pub(crate) fn problem(&self) -> (u16, &str) {
        let kind = self.body["type"].as_str().unwrap_or_default();
        (self.status.as_u16(), kind.trim_start_matches("/problems/"))
    }

    /// 503 with `Retry-After`: to be asked again.
    pub(crate) fn is_busy(&self) -> bool {
        self.status == 503 && self.headers.contains_key("retry-after")
    }

    /// The payment's status.
    pub(crate) fn payment_status(&self) -> &str {
        self.body["status"].as_str().unwrap_or_default()
    }
}

pub(crate) trait Ask {
    /// For calls whose answer must come.
    async fn answer(self) -> Answer;
    /// As a patient caller: 503 is asked again.
    async fn final_answer(self) -> Answer;
}

impl Ask for RequestBuilder {
    async fn answer(self) -> Answer {
        Answer::read(self.send().await.expect("an answer")).await
    }

    async fn final_answer(self) -> Answer {
        testkit::eventually(Duration::from_secs(60), "an answer other than 503", async || {
            let again = self.try_clone().expect("a body that can be sent again");
            let answer = again.answer().await;
            (!answer.is_busy()).then_some(answer)
        })
        .await
    }
}

pub(crate) fn eur(amount_minor: i64) -> Value {
    json!({"amount_minor": amount_minor, "currency": "EUR"})
}

pub(crate) fn payment(card: &str) -> Value {
    json!({"buyer": "alice", "amount": eur(500), "card": card})
}
