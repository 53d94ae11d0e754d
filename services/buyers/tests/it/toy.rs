//! A shop in memory: one mutex, four routes, and a defect on request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

/// What is wrong with it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Defect {
    /// It never says sold out.
    SellsForever,
    /// It takes a repeat for a new purchase.
    ForgetsKeys,
    /// It loses the first purchase of the burst after it was answered.
    LosesASale,
    /// Its lock server is not there.
    HasNoSuchStrategy,
}

#[derive(Default)]
struct Books {
    capacity: BTreeMap<String, i64>,
    /// Event, purchase id → the answer that was given.
    sales: Vec<(String, String, Value)>,
    by_key: BTreeMap<String, (u16, Value)>,
}

#[derive(Clone)]
struct Toy {
    books: Arc<Mutex<Books>>,
    defect: Option<Defect>,
}

pub(crate) struct ToyShop {
    addr: std::net::SocketAddr,
    server: tokio::task::JoinHandle<()>,
}

impl ToyShop {
    pub(crate) async fn start(defect: Option<Defect>) -> Self {
        let toy = Toy {
            books: Arc::default(),
            defect,
        };
        let app = axum::Router::new()
            .route("/v1/events", post(create))
            .route("/v1/purchases", post(buy))
            .route("/v1/purchases/{id}", get(purchase))
            .route("/v1/audit/{id}", get(audit))
            .with_state(toy);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let addr = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move { axum::serve(listener, app).await.expect("serves") });
        Self { addr, server }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Drop for ToyShop {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn create(State(toy): State<Toy>, Json(event): Json<Value>) -> Response {
    let id = event["id"].as_str().expect("an id").to_owned();
    let capacity = event["capacity"].as_i64().expect("a capacity");
    toy.books
        .lock()
        .expect("not poisoned")
        .capacity
        .insert(id.clone(), capacity);
    let view = json!({"id": id, "name": event["name"], "capacity": capacity, "price": event["price"],
        "available": capacity, "held": 0, "sold": 0, "oversold": 0, "availability": "available",
        "created_at": chrono::Utc::now()});
    (StatusCode::CREATED, Json(view)).into_response()
}

fn problem(status: u16, slug: &str) -> Response {
    let body = json!({"type": format!("/problems/{slug}"), "title": slug, "status": status, "detail": slug});
    answer(status, &body, false)
}

fn answer(status: u16, body: &Value, replayed: bool) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let mut response = (status, Json(body)).into_response();
    if replayed {
        response
            .headers_mut()
            .insert("idempotent-replayed", "true".parse().expect("a value"));
    }
    response
}

async fn buy(State(toy): State<Toy>, headers: HeaderMap, Json(order): Json<Value>) -> Response {
    if toy.defect == Some(Defect::HasNoSuchStrategy) {
        return problem(503, "strategy-unavailable");
    }
    let key = headers["idempotency-key"].to_str().expect("ASCII").to_owned();
    let event = order["items"][0]["event_id"]
        .as_str()
        .expect("an event")
        .to_owned();
    let mut books = toy.books.lock().expect("not poisoned");
    if toy.defect != Some(Defect::ForgetsKeys)
        && let Some((status, body)) = books.by_key.get(&key)
    {
        return answer(*status, body, true);
    }
    let sold = books.sales.iter().filter(|(e, ..)| *e == event).count() as i64;
    if sold >= books.capacity[&event] && toy.defect != Some(Defect::SellsForever) {
        return problem(409, "sold-out");
    }
    let id = format!("p-{}", books.sales.len());
    let body = json!({"id": id, "status": "completed", "buyer": order["buyer"], "items": order["items"],
        "tickets": [{"id": format!("t-{id}"), "event_id": event}],
        "timings": {"total_ms": 1.0, "lock_wait_ms": 0.5, "section_ms": 0.1, "payment_ms": 0.2}});
    books.sales.push((event, id, body.clone()));
    books.by_key.insert(key, (201, body.clone()));
    answer(201, &body, false)
}

async fn purchase(State(toy): State<Toy>, Path(id): Path<String>) -> Response {
    let books = toy.books.lock().expect("not poisoned");
    let lost = books
        .sales
        .iter()
        .find(|(event, ..)| event.starts_with("round"))
        .map(|(_, id, _)| id);
    match books.sales.iter().find(|(_, sale, _)| *sale == id) {
        Some(_) if toy.defect == Some(Defect::LosesASale) && lost == Some(&id) => problem(404, "not-found"),
        Some((.., body)) => answer(200, body, false),
        None => problem(404, "not-found"),
    }
}

async fn audit(State(toy): State<Toy>, Path(event): Path<String>) -> Response {
    let books = toy.books.lock().expect("not poisoned");
    let capacity = books.capacity[&event];
    let sold = books.sales.iter().filter(|(e, ..)| *e == event).count() as i64;
    let verdict = if sold > capacity { "fail" } else { "pass" };
    let invariants: BTreeMap<_, _> = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8"]
        .into_iter()
        .map(|name| (name, json!({"verdict": verdict, "detail": "toy"})))
        .collect();
    let report = json!({"event_id": event, "capacity": capacity, "available": capacity - sold, "held": 0,
        "sold": sold, "oversold": (sold - capacity).max(0), "undersold": 0,
        "purchases": {"completed": sold, "declined": 0, "sold_out": 0, "pending": 0, "other": 0},
        "charged": sold, "double_charged": 0, "charged_without_ticket": 0, "ticket_without_charge": 0,
        "stale_tokens_rejected": 0, "invariants": invariants, "verdict": verdict});
    Json(report).into_response()
}
