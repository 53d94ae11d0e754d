//! The front door, as a buyer and an auditor see it: plain HTTP, nothing else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use ticketing_types::audit::AuditReport;
use ticketing_types::checkout::{PurchaseStatus, PurchaseView};
use ticketing_types::inventory::{CreateEvent, EventName, EventView, Ticket};
use ticketing_types::{Capacity, Currency, EventId, Money, PurchaseId};

use crate::{Answer, Kept, Order, Plan, Record};

/// How long a question that is not a purchase may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to go on asking while the shop is busy or away (an election, a restart).
const ASK_AGAIN_FOR: Duration = Duration::from_secs(20);
/// The pause between two such questions.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Why the shop could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ShopError {
    /// No answer.
    #[error("{what}: no answer from {base}: {cause}")]
    Unreachable {
        /// What was asked.
        what: String,
        /// The front door.
        base: String,
        /// What the client said.
        cause: String,
    },
    /// An answer that is none.
    #[error("{what}: {status} {detail}")]
    Refused {
        /// What was asked.
        what: String,
        /// The status.
        status: u16,
        /// What the problem says.
        detail: String,
    },
    /// The strategy exists, but not here: its server or its database is missing.
    #[error("{detail}")]
    StrategyUnavailable {
        /// What the problem says.
        detail: String,
    },
}

impl ShopError {
    /// Whether the same question may find an answer a little later.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            Self::StrategyUnavailable { .. } => false,
        }
    }
}

/// The front door at one address.
#[derive(Debug, Clone)]
pub struct Shop {
    http: reqwest::Client,
    base: String,
}

impl Shop {
    /// The shop at this address (`http://127.0.0.1:8080`), with a client of its own: a connection for every
    /// buyer, none shared by waiting for another's answer, and no retries that the record would not show.
    pub fn new(base: &str) -> Result<Self, ShopError> {
        let http = reqwest::Client::builder()
            .no_proxy() // an environment's proxy is no part of the shop
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(4096)
            .tcp_nodelay(true)
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| ShopError::Unreachable {
                what: "making an HTTP client".into(),
                base: base.into(),
                cause: error.to_string(),
            })?;
        Ok(Self::with_client(http, base))
    }

    /// The shop at this address, asked with this client.
    pub fn with_client(http: reqwest::Client, base: &str) -> Self {
        Self {
            http,
            base: base.trim_end_matches('/').to_owned(),
        }
    }

    /// The address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The request for an order, ready to send.
    pub fn purchase(&self, order: &Order, timeout: Duration) -> reqwest::RequestBuilder {
        order
            .dress(self.http.post(format!("{}{}", self.base, Order::PATH)))
            .timeout(timeout)
    }

    /// Sends an order once.
    pub async fn buy(&self, order: &Order, timeout: Duration) -> Answer {
        Answer::read(self.purchase(order, timeout).send().await).await
    }

    /// Buys one ticket of an event made for it, to find out before the burst whether the strategy works here.
    pub async fn probe(&self, plan: &Plan) -> Result<(), ShopError> {
        let order = plan.probe_order(plan.probe_event_id());
        self.create_event(&plan.probe_event_id(), "Probe", 1).await?;
        let until = Instant::now() + ASK_AGAIN_FOR;
        loop {
            let answer = self.buy(&order, plan.request_timeout).await;
            let detail = answer.detail.clone().unwrap_or_else(|| answer.label());
            match answer.slug.as_deref() {
                Some("strategy-unavailable") => return Err(ShopError::StrategyUnavailable { detail }),
                _ if answer.is_final() => return Ok(()),
                _ if answer.status.is_some_and(|s| s < 500 && s != 202 && s != 409)
                    || Instant::now() > until =>
                {
                    return Err(ShopError::Refused {
                        what: "a purchase to try the strategy".into(),
                        status: answer.status.unwrap_or(0),
                        detail,
                    });
                }
                _ => tokio::time::sleep(ASK_AGAIN_AFTER).await,
            }
        }
    }

    /// Creates the events of a round. Again is harmless: their ids are the round's.
    pub async fn prepare(&self, plan: &Plan) -> Result<(), ShopError> {
        let name = format!("Round {} {} {}", plan.seed, plan.strategy, plan.run);
        self.create_event(&plan.event_id(), &name, plan.capacity).await?;
        if plan.storm.is_some() {
            let name = format!("Storm {} {} {}", plan.seed, plan.strategy, plan.run);
            self.create_event(&plan.storm_event_id(), &name, plan.storm_capacity())
                .await?;
        }
        Ok(())
    }

    /// Creates one event, tickets at 50.00 EUR.
    pub async fn create_event(
        &self,
        id: &EventId,
        name: &str,
        capacity: u32,
    ) -> Result<EventView, ShopError> {
        let invalid = |error: ticketing_types::Invalid| ShopError::Refused {
            what: "creating an event".into(),
            status: 400,
            detail: error.to_string(),
        };
        let event = CreateEvent {
            id: Some(id.clone()),
            name: EventName::try_from(name.to_owned()).map_err(invalid)?,
            capacity: Capacity::try_from(u64::from(capacity)).map_err(invalid)?,
            price: Currency::parse("EUR")
                .and_then(|eur| Money::new(5000, eur))
                .map_err(invalid)?,
            max_per_buyer: None,
        };
        self.ask("creating an event", || {
            self.http.post(format!("{}/v1/events", self.base)).json(&event)
        })
        .await
    }

    /// An event's stock.
    pub async fn event(&self, id: &EventId) -> Result<EventView, ShopError> {
        self.get("reading an event", &format!("/v1/events/{id}")).await
    }

    /// The verdict over all books of an event.
    pub async fn audit(&self, id: &EventId) -> Result<AuditReport, ShopError> {
        self.get("the audit", &format!("/v1/audit/{id}")).await
    }

    /// One purchase.
    pub async fn purchase_view(&self, id: &PurchaseId) -> Result<PurchaseView, ShopError> {
        self.get("reading a purchase", &format!("/v1/purchases/{id}"))
            .await
    }

    /// Waits until no purchase of these events is pending and no hold stands. `false` when it is not so in time.
    pub async fn wait_for_rest(&self, events: &[EventId], timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut pause = ASK_AGAIN_AFTER;
        loop {
            let mut at_rest = true;
            for id in events {
                let audit = self
                    .once(self.http.get(format!("{}/v1/audit/{id}", self.base)))
                    .await;
                at_rest &=
                    audit.is_ok_and(|audit: AuditReport| audit.purchases.pending == 0 && audit.held == 0);
            }
            if at_rest || Instant::now() >= until {
                return at_rest;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Asks for every purchase that a buyer was told is completed: it must still be, with the same tickets.
    pub async fn check_kept(&self, records: &[Record]) -> Kept {
        let mut seen: BTreeMap<&PurchaseId, &[Ticket]> = BTreeMap::new();
        for answer in records.iter().map(|r| &r.answer).filter(|a| a.is_completed()) {
            if let Some(id) = &answer.purchase_id {
                seen.insert(id, &answer.tickets);
            }
        }
        let checks = seen.iter().map(|(&id, &tickets)| async move {
            match self.purchase_view(id).await {
                Ok(view) => Some(told_and_kept(id, tickets, &view)),
                Err(ShopError::Refused { status: 404, .. }) => Some(Err(format!("{id} is unknown"))),
                Err(_) => None,
            }
        });
        // Collected first: a stream over borrowed closures trips the compiler's lifetime inference.
        let checks: Vec<_> = checks.collect();
        let verdicts: Vec<_> = futures::stream::iter(checks).buffer_unordered(16).collect().await;
        let mut kept = Kept {
            seen: verdicts.len() as u64,
            ..Kept::default()
        };
        for verdict in verdicts {
            match verdict {
                Some(Ok(())) => {}
                Some(Err(why)) => kept.lost.push(why),
                None => kept.unreadable += 1,
            }
        }
        kept
    }

    async fn get<T: DeserializeOwned>(&self, what: &str, path: &str) -> Result<T, ShopError> {
        self.ask(what, || self.http.get(format!("{}{path}", self.base)))
            .await
    }

    /// Asks until there is an answer or a refusal; everything asked here may be asked twice.
    async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        request: impl Fn() -> reqwest::RequestBuilder,
    ) -> Result<T, ShopError> {
        let until = Instant::now() + ASK_AGAIN_FOR;
        loop {
            let error = match self.once(request()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error.about(what),
            };
            if !error.retryable() || Instant::now() >= until {
                return Err(error);
            }
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
    }

    async fn once<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<T, ShopError> {
        let unreachable = |error: reqwest::Error| ShopError::Unreachable {
            what: String::new(),
            base: self.base.clone(),
            cause: error.to_string(),
        };
        let response = request.timeout(ASK_TIMEOUT).send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreachable)?;
        if status.is_success() {
            serde_json::from_slice(&body).map_err(|error| ShopError::Refused {
                what: String::new(),
                status: status.as_u16(),
                detail: format!("an answer of another shape: {error}"),
            })
        } else {
            let answer = Answer::parse(status.as_u16(), false, None, &body);
            Err(ShopError::Refused {
                what: String::new(),
                status: status.as_u16(),
                detail: answer.detail.or(answer.slug).unwrap_or_default(),
            })
        }
    }
}

impl ShopError {
    fn about(mut self, about: &str) -> Self {
        if let Self::Unreachable { what, .. } | Self::Refused { what, .. } = &mut self {
            about.clone_into(what);
        }
        self
    }
}

fn told_and_kept(id: &PurchaseId, told: &[Ticket], kept: &PurchaseView) -> Result<(), String> {
    if kept.status != PurchaseStatus::Completed {
        return Err(format!("{id} was completed and is {:?}", kept.status));
    }
    match told.iter().find(|ticket| !kept.tickets.contains(ticket)) {
        Some(ticket) => Err(format!("{id} has lost ticket {}", ticket.id)),
        None if told.len() != kept.tickets.len() => Err(format!(
            "{id} has {} tickets and told the buyer {}",
            kept.tickets.len(),
            told.len()
        )),
        None => Ok(()),
    }
}
