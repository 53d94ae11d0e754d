//! The world around checkout: an inventory and a billing in one server, with the rules of DESIGN §5.2 and §5.3,
//! a book of every call, and a script of what goes wrong.

mod services;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Router, middleware};
use serde_json::{Value, json};
use tokio::sync::watch;

/// What one ticket costs, in cents.
pub(crate) const PRICE_MINOR: i64 = 1250;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    PlaceHold,
    ConfirmHold,
    ReleaseHold,
    Authorize,
    Capture,
    Void,
    Refund,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The work is done, the answer is not one.
    LostReply,
    /// Nothing is done: 503 with `Retry-After`.
    Busy,
    /// Nothing is done: 409 `stale-fencing-token`.
    Stale,
    /// Nothing is done: somebody who has never heard of such calls answers 404 `not-found`.
    Misrouted,
    /// Nothing is done: 400 `invalid-request`.
    Misread,
    /// The hold runs out before the call arrives.
    HoldExpires,
    /// The hold is given back before the call arrives.
    HoldCloses,
    /// The call waits until [`World::go_on`].
    Stuck,
}

/// One call as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) call: Call,
    pub(crate) id: String,
    pub(crate) strategy: String,
    pub(crate) payment_key: String,
    pub(crate) traceparent: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldState {
    Placed,
    Confirmed,
    Released,
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaymentState {
    Authorized,
    Declined,
    Captured,
    Voided,
}

#[derive(Debug, Clone)]
struct Hold {
    state: HoldState,
    quantity: i64,
}

#[derive(Debug, Clone)]
struct Payment {
    state: PaymentState,
    amount_minor: i64,
    captures: i64,
    refunded_minor: i64,
}

#[derive(Debug, Default)]
struct Book {
    stock: i64,
    holds: BTreeMap<String, Hold>,
    payments: BTreeMap<String, Payment>,
    seen: Vec<Seen>,
    script: Vec<(Call, Trouble)>,
}

/// The server and its book.
#[derive(Clone)]
pub(crate) struct World {
    book: Arc<Mutex<Book>>,
    going: Arc<watch::Sender<bool>>,
    pub(crate) url: String,
}

impl World {
    /// A world with this many seats.
    pub(crate) async fn with_stock(stock: i64) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let world = Self {
            book: Arc::new(Mutex::new(Book {
                stock,
                ..Book::default()
            })),
            going: Arc::new(watch::Sender::new(false)),
            url: format!("http://{}", listener.local_addr().unwrap()),
        };
        let router = Router::new()
            .route(
                "/v1/holds/{id}",
                put(services::place_hold).delete(services::release_hold),
            )
            .route("/v1/holds/{id}/confirm", post(services::confirm_hold))
            .route("/v1/payments/{id}", put(services::authorize))
            .route("/v1/payments/{id}/capture", post(services::capture))
            .route("/v1/payments/{id}/void", post(services::void))
            .route("/v1/payments/{id}/refunds", post(services::refund))
            .layer(middleware::from_fn_with_state(world.clone(), trouble))
            .with_state(world.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        world
    }

    /// The next call of this kind meets this trouble.
    pub(crate) fn next(&self, call: Call, trouble: Trouble) -> &Self {
        self.book().script.push((call, trouble));
        self
    }

    /// Lets stuck calls go on, those to come included.
    pub(crate) fn go_on(&self) {
        self.going.send_replace(true);
    }

    /// Calls of this kind so far.
    pub(crate) fn calls(&self, call: Call) -> usize {
        self.book().seen.iter().filter(|seen| seen.call == call).count()
    }

    /// All calls so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.book().seen.clone()
    }

    pub(crate) fn hold(&self, id: &str) -> Option<HoldState> {
        self.book().holds.get(id).map(|hold| hold.state)
    }

    pub(crate) fn payment(&self, id: &str) -> Option<PaymentState> {
        self.book().payments.get(id).map(|payment| payment.state)
    }

    /// What the buyer of this purchase has paid.
    pub(crate) fn paid_minor(&self, id: &str) -> i64 {
        self.book().payments.get(id).map_or(0, |payment| {
            payment.captures * payment.amount_minor - payment.refunded_minor
        })
    }

    /// Seats that became tickets.
    pub(crate) fn sold(&self) -> i64 {
        let book = self.book();
        let confirmed = book
            .holds
            .values()
            .filter(|hold| hold.state == HoldState::Confirmed);
        confirmed.map(|hold| hold.quantity).sum()
    }

    /// Captures, all payments together.
    pub(crate) fn captures(&self) -> i64 {
        self.book()
            .payments
            .values()
            .map(|payment| payment.captures)
            .sum()
    }

    /// Nothing is half done: no hold stands, no money is reserved.
    pub(crate) fn assert_at_rest(&self) {
        let book = self.book();
        assert!(
            book.holds.values().all(|hold| hold.state != HoldState::Placed),
            "{book:?}"
        );
        assert!(
            book.payments
                .values()
                .all(|payment| payment.state != PaymentState::Authorized),
            "{book:?}"
        );
        assert!(
            book.payments.values().all(|payment| payment.captures <= 1),
            "{book:?}"
        );
    }

    fn end_hold(&self, id: &str, state: HoldState) {
        if let Some(hold) = self.book().holds.get_mut(id) {
            hold.state = state;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the call, and does to it what the script says.
async fn trouble(State(world): State<World>, request: Request, next: middleware::Next) -> Response {
    let path = request.uri().path().to_owned();
    let call = match (request.method().as_str(), path.rsplit('/').next().unwrap()) {
        ("POST", "confirm") => Call::ConfirmHold,
        ("POST", "capture") => Call::Capture,
        ("POST", "void") => Call::Void,
        ("POST", "refunds") => Call::Refund,
        ("DELETE", _) => Call::ReleaseHold,
        _ if path.starts_with("/v1/holds") => Call::PlaceHold,
        _ => Call::Authorize,
    };
    let id = path.split('/').nth(3).unwrap().to_owned();
    let trouble = {
        let mut book = world.book();
        book.seen.push(Seen {
            call,
            id: id.clone(),
            strategy: header(request.headers(), "lock-strategy"),
            payment_key: header(request.headers(), "payment-key"),
            traceparent: header(request.headers(), "traceparent"),
        });
        let at = book.script.iter().position(|(scripted, _)| *scripted == call);
        at.map(|at| book.script.remove(at).1)
    };
    match trouble {
        None => next.run(request).await,
        Some(Trouble::LostReply) => {
            next.run(request).await;
            StatusCode::BAD_GATEWAY.into_response()
        }
        Some(Trouble::Busy) => busy(),
        Some(Trouble::Stale) => problem(409, "stale-fencing-token", json!({})),
        Some(Trouble::Misrouted) => problem(404, "not-found", json!({})),
        Some(Trouble::Misread) => problem(400, "invalid-request", json!({})),
        Some(Trouble::HoldExpires) => {
            world.end_hold(&id, HoldState::Expired);
            next.run(request).await
        }
        Some(Trouble::HoldCloses) => {
            world.end_hold(&id, HoldState::Released);
            next.run(request).await
        }
        Some(Trouble::Stuck) => {
            let mut going = world.going.subscribe();
            let _ = going.wait_for(|going| *going).await;
            next.run(request).await
        }
    }
}

fn busy() -> Response {
    let mut response = problem(503, "lock-wait-timeout", json!({}));
    response.headers_mut().insert("retry-after", "1".parse().unwrap());
    response
}

fn problem(status: u16, slug: &str, mut members: Value) -> Response {
    members["type"] = format!("/problems/{slug}").into();
    let content_type = [("content-type", "application/problem+json")];
    (
        StatusCode::from_u16(status).unwrap(),
        content_type,
        members.to_string(),
    )
        .into_response()
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).map(|value| value.to_str().unwrap());
    value.unwrap_or_default().to_owned()
}
