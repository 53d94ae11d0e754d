//! A gateway on a port of its own, and calls to it.

use std::time::Duration;

use card_gateway::{Config, start};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use testkit::TestDb;
use tokio_util::sync::CancellationToken;

/// How late `card_slow` answers here: enough to be told from "at once" on a loaded machine.
pub(crate) const LATE: Duration = Duration::from_millis(700);

pub(crate) struct Gateway {
    pub(crate) url: String,
    pub(crate) http: reqwest::Client,
    shutdown: CancellationToken,
    running: service_kit::Running,
}

impl Gateway {
    pub(crate) async fn start(db: &TestDb) -> Self {
        let shutdown = CancellationToken::new();
        let config = Config {
            late: LATE,
            enable_faults: true,
            ..Config::new(db.url())
        };
        let running = start(config, shutdown.clone()).await.expect("starts");
        Self {
            url: format!("http://{}", running.addr),
            http: service_kit::http_client(),
            shutdown,
            running,
        }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.join().await.expect("stops well");
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> reqwest::Result<Response> {
        self.http
            .post(format!("{}{path}", self.url))
            .json(&body)
            .send()
            .await
    }

    /// For calls whose answer must come.
    pub(crate) async fn answer(&self, path: &str, body: Value) -> Answer {
        Answer::read(self.post(path, body).await.expect("an answer")).await
    }

    pub(crate) async fn authorize(&self, key: &str, reference: &str, card: &str) -> Answer {
        self.answer("/v1/authorizations", authorization(key, reference, card))
            .await
    }

    pub(crate) async fn capture(&self, key: &str, reference: &str, authorization_id: &str) -> Answer {
        self.answer("/v1/captures", capture(key, reference, authorization_id))
            .await
    }

    pub(crate) async fn void(&self, key: &str, reference: &str) -> Answer {
        self.answer("/v1/voids", json!({"key": key, "reference": reference}))
            .await
    }

    pub(crate) async fn refund(&self, key: &str, reference: &str, amount_minor: i64) -> Answer {
        let body = json!({"key": key, "reference": reference, "amount": eur(amount_minor)});
        self.answer("/v1/refunds", body).await
    }

    /// (authorizations, captures, captured, refunded), or nothing.
    pub(crate) async fn totals(&self, reference: &str) -> Option<(i64, i64, i64, i64)> {
        let ledger = self
            .answer("/v1/ledger/lookup", json!({"references": [reference]}))
            .await;
        let totals = ledger.body["totals"].get(0)?.clone();
        let number = |name: &str| totals[name].as_i64().expect("a number");
        Some((
            number("authorizations"),
            number("captures"),
            number("captured_minor"),
            number("refunded_minor"),
        ))
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) async fn read(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.json().await.expect("a JSON body");
        Self {
            status,
            headers,
            body,
        }
    }

    pub(crate) fn id(&self) -> &str {
        assert!(self.status.is_success(), "{self:?}");
        self.body["id"].as_str().expect("an id")
    }

    /// (status, slug of the problem).
    pub(crate) fn problem(&self) -> (u16, &str) {
        let kind = self.body["type"].as_str().unwrap_or_default();
        (self.status.as_u16(), kind.trim_start_matches("/problems/"))
    }
}

pub(crate) fn eur(amount_minor: i64) -> Value {
    json!({"amount_minor": amount_minor, "currency": "EUR"})
}

pub(crate) fn authorization(key: &str, reference: &str, card: &str) -> Value {
    json!({"key": key, "reference": reference, "card": card, "amount": eur(500)})
}

pub(crate) fn capture(key: &str, reference: &str, authorization_id: &str) -> Value {
    json!({"key": key, "reference": reference, "authorization_id": authorization_id, "amount": eur(500)})
}
