//! What came back: a status, a problem's slug, a purchase; or nothing, which is an outcome too.
//!
//! An outcome's *label* is what reports count by: `201`, `201 replayed`, `409 sold-out`,
//! `503 lock-wait-timeout`, `timeout`. No answer is never called a failure: what happened is not known until
//! the books are read.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use ticketing_types::checkout::{PurchaseStatus, PurchaseTimings};
use ticketing_types::inventory::Ticket;
use ticketing_types::{PurchaseId, header};

use crate::Order;

/// What one request got.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The status; `None` when no answer came.
    pub status: Option<u16>,
    /// The slug of the problem, or why no answer came (`timeout`, `connection-refused`, `connection-lost`).
    pub slug: Option<String>,
    /// What the problem says to a person.
    pub detail: Option<String>,
    /// The purchase that the answer is about.
    pub purchase_id: Option<PurchaseId>,
    /// Where it stands, as the answer says.
    pub purchase_status: Option<PurchaseStatus>,
    /// The tickets it brought.
    pub tickets: Vec<Ticket>,
    /// Where its time went.
    pub timings: Option<PurchaseTimings>,
    /// `Idempotent-Replayed: true`: an earlier answer, given again.
    pub replayed: bool,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
}

/// The fields we look for in a body: a purchase has some of them, a problem others.
#[derive(Deserialize)]
struct Body {
    #[serde(rename = "type")]
    problem: Option<String>,
    detail: Option<String>,
    id: Option<PurchaseId>,
    #[serde(alias = "purchase_id")]
    purchase: Option<PurchaseId>,
    #[serde(rename = "status")]
    purchase_status: Option<serde_json::Value>,
    #[serde(default)]
    tickets: Vec<Ticket>,
    timings: Option<PurchaseTimings>,
}

impl Answer {
    /// Reads what a request got: its response to the end, or why there is none.
    pub async fn read(result: Result<reqwest::Response, reqwest::Error>) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(error) => return Self::none_because(&error),
        };
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|v| v.to_str().ok());
        let replayed = header(header::IDEMPOTENT_REPLAYED) == Some("true");
        let retry_after_s = header("retry-after").and_then(|v| v.trim().parse().ok());
        match response.bytes().await {
            Ok(body) => Self::parse(status, replayed, retry_after_s, &body),
            Err(error) => Self::none_because(&error),
        }
    }

    /// The same from its parts.
    pub fn parse(status: u16, replayed: bool, retry_after_s: Option<u64>, body: &[u8]) -> Self {
        let mut answer = Self {
            status: Some(status),
            replayed,
            retry_after_s,
            ..Self::default()
        };
        if let Ok(body) = serde_json::from_slice::<Body>(body) {
            answer.slug = body
                .problem
                .as_deref()
                .and_then(|t| t.rsplit('/').next())
                .map(str::to_owned);
            answer.detail = body.detail;
            answer.purchase_id = body.id.or(body.purchase);
            answer.purchase_status = body
                .purchase_status
                .and_then(|status| serde_json::from_value(status).ok());
            answer.tickets = body.tickets;
            answer.timings = body.timings;
        }
        answer
    }

    fn none_because(error: &reqwest::Error) -> Self {
        let slug = if error.is_timeout() {
            "timeout"
        } else if error.is_connect() {
            "connection-refused"
        } else {
            "connection-lost"
        };
        Self {
            slug: Some(slug.to_owned()),
            ..Self::default()
        }
    }

    /// What reports count it under.
    pub fn label(&self) -> String {
        let replayed = if self.replayed { " replayed" } else { "" };
        match (self.status, self.slug.as_deref()) {
            (Some(status), Some(slug)) => format!("{status} {slug}{replayed}"),
            (Some(status), None) => format!("{status}{replayed}"),
            (None, slug) => slug.unwrap_or("no-answer").to_owned(),
        }
    }

    /// A purchase with tickets.
    pub fn is_completed(&self) -> bool {
        self.status == Some(201)
    }

    fn is_slug(&self, slug: &str) -> bool {
        self.slug.as_deref() == Some(slug)
    }

    /// Nothing more will come of this purchase: asking again gets the same answer.
    pub fn is_final(&self) -> bool {
        match self.status {
            Some(201 | 402 | 422) => true,
            Some(409) => !self.is_slug("purchase-in-progress"),
            _ => false,
        }
    }

    /// One of the answers that contention may give (I9): a sale, a wait, a refusal, or 503 with `Retry-After`.
    pub fn is_allowed(&self) -> bool {
        match self.status {
            Some(201 | 402 | 409 | 422) => true,
            Some(202 | 503) => self.retry_after_s.is_some(),
            _ => false,
        }
    }

    /// No answer came.
    pub fn is_silent(&self) -> bool {
        self.status.is_none()
    }
}

/// One request of one buyer: what it sent, when, and what it got.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The part of the round.
    pub group: &'static str,
    /// The buyer's number in it.
    pub index: u32,
    /// Which of the buyer's requests this is, from 0.
    pub attempt: u32,
    /// The key it was sent under.
    pub idempotency_key: String,
    /// When it was sent, in milliseconds after the release.
    pub sent_ms: f64,
    /// How long the answer took, in milliseconds.
    pub latency_ms: f64,
    /// What it got.
    pub answer: Answer,
}

impl Record {
    /// A record of an order that was sent so long after the release, and answered so long after that.
    pub fn new(order: &Order, attempt: u32, sent: Duration, latency: Duration, answer: Answer) -> Self {
        Self {
            group: order.group,
            index: order.index,
            attempt,
            idempotency_key: order.idempotency_key.clone(),
            sent_ms: sent.as_secs_f64() * 1000.0,
            latency_ms: latency.as_secs_f64() * 1000.0,
            answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, slug: &str, retry_after_s: Option<u64>) -> Answer {
        let body = format!(r#"{{"type":"/problems/{slug}","title":"t","status":{status},"detail":"why"}}"#);
        Answer::parse(status, false, retry_after_s, body.as_bytes())
    }

    #[test]
    fn a_sale_carries_its_tickets_and_its_times() {
        let body = br#"{"id":"p-1","status":"completed","buyer":"a","items":[{"event_id":"e","quantity":1}],
            "tickets":[{"id":"t-1","event_id":"e"}],"amount":{"amount_minor":1,"currency":"EUR"},
            "timings":{"total_ms":9.0,"lock_wait_ms":4.5,"section_ms":1.0,"payment_ms":2.0}}"#;
        let answer = Answer::parse(201, true, None, body);
        assert_eq!(answer.label(), "201 replayed");
        assert_eq!(answer.purchase_id.as_ref().map(PurchaseId::as_str), Some("p-1"));
        assert_eq!(answer.purchase_status, Some(PurchaseStatus::Completed));
        assert_eq!(answer.tickets.len(), 1);
        assert_eq!(answer.timings.map(|t| t.lock_wait_ms), Some(4.5));
    }

    #[test]
    fn a_problem_is_counted_under_its_status_and_slug() {
        assert_eq!(problem(409, "sold-out", None).label(), "409 sold-out");
        assert_eq!(
            problem(503, "lock-wait-timeout", Some(1)).label(),
            "503 lock-wait-timeout"
        );
        assert_eq!(Answer::parse(502, false, None, b"<html>").label(), "502");
    }

    #[test]
    fn contention_may_answer_503_only_with_retry_after() {
        assert!(problem(503, "lock-wait-timeout", Some(1)).is_allowed());
        assert!(!problem(503, "lock-wait-timeout", None).is_allowed());
        assert!(!problem(500, "internal", Some(1)).is_allowed());
        assert!(problem(402, "payment-declined", None).is_allowed());
    }

    #[test]
    fn a_purchase_in_progress_is_not_the_last_word() {
        assert!(!problem(409, "purchase-in-progress", Some(1)).is_final());
        assert!(problem(409, "sold-out", None).is_final());
        assert!(!problem(503, "lock-wait-timeout", Some(1)).is_final());
        assert!(!Answer::default().is_final());
    }

    #[tokio::test]
    async fn nobody_listening_is_told_apart_from_a_late_answer() {
        let client = reqwest::Client::new();
        // Port 1 on loopback: nothing listens there.
        let refused = Answer::read(client.get("http://127.0.0.1:1/").send().await).await;
        assert_eq!(refused.label(), "connection-refused");
        assert!(refused.is_silent());
    }
}
