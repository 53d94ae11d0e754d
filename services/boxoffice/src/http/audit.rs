//! The audit: reads the books, lets `domain/audit` judge.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use chrono::Utc;
use service_kit::peer::{Call, CallError};
use service_kit::{ApiPath, Problem};
use ticketing_types::audit::AuditReport;
use ticketing_types::billing::{BillingRecords, PaymentLookup};
use ticketing_types::gateway::{Ledger, LedgerLookup};
use ticketing_types::{EventId, PaymentId};

use super::{AppState, Peers};
use crate::domain::audit::{Books, judge};

/// References asked for in one lookup.
const REFERENCES_MAX: usize = 1000;
/// How long to go on asking for a book.
const ASK_FOR: Duration = Duration::from_secs(3);

/// Audit an event: read every service's own book and the card processor's ledger, and judge each promise.
#[utoipa::path(
    get, path = "/v1/audit/{event_id}", tag = "boxoffice", params(("event_id" = EventId, Path)),
    responses(
        (status = 200, body = AuditReport, description = "The verdict; what could not be read is `unknown`"),
        (status = 404, description = "`event-not-found`: inventory knows no such event"),
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    ApiPath(event_id): ApiPath<EventId>,
) -> Result<Json<AuditReport>, Problem> {
    let books = read(&state.peers, &event_id).await?;
    Ok(Json(judge(&event_id, &books, Utc::now())))
}

/// Reads the books, intentions first: what a purchase that is over has caused is then in all later ones.
async fn read(peers: &Peers, event_id: &EventId) -> Result<Books, Problem> {
    let path = format!("/v1/audit-records/{event_id}");
    let checkout = read_or_miss(peers.checkout.get(&path)).await?;
    let inventory = match book(peers.inventory.get(&path)).await {
        Ok(inventory) => Some(inventory),
        Err(CallError::Refused { problem, .. }) if problem.status.as_u16() == 404 => return Err(problem),
        Err(error) => missed(error),
    };
    let mut books = Books {
        inventory,
        checkout,
        billing: None,
        gateway: None,
    };
    let ids: Vec<PaymentId> = references(&books).into_iter().collect();
    let (billing, gateway) = tokio::join!(read_billing(peers, &ids), read_gateway(peers, &ids));
    (books.billing, books.gateway) = (billing, gateway);
    Ok(books)
}

/// Every purchase of the event, and every hold: one that no purchase knows of may have been paid, too.
fn references(books: &Books) -> BTreeSet<PaymentId> {
    let purchases = books
        .checkout
        .iter()
        .flat_map(|book| &book.purchases)
        .map(|p| p.id.payment());
    let holds = books.inventory.iter().flat_map(|book| &book.holds);
    // A hold's id is a payment's id in the same words (DESIGN §5.4).
    let holds = holds.filter_map(|hold| PaymentId::parse(hold.id.as_str()).ok());
    purchases.chain(holds).collect()
}

async fn read_billing(peers: &Peers, ids: &[PaymentId]) -> Option<BillingRecords> {
    let mut all = BillingRecords {
        payments: Vec::new(),
        stale_tokens_rejected: 0,
    };
    for payment_ids in chunks(ids) {
        let lookup = PaymentLookup { payment_ids };
        let call = peers.billing.post("/v1/audit-records").json(&lookup);
        let records: BillingRecords = read_or_miss(call).await.ok()??;
        all.payments.extend(records.payments);
        // Counted for the service, not for the payments asked for.
        all.stale_tokens_rejected = all.stale_tokens_rejected.max(records.stale_tokens_rejected);
    }
    Some(all)
}

async fn read_gateway(peers: &Peers, ids: &[PaymentId]) -> Option<Ledger> {
    let mut all = Ledger { totals: Vec::new() };
    for references in chunks(ids) {
        let lookup = LedgerLookup { references };
        let call = peers.gateway.post("/v1/ledger/lookup").json(&lookup);
        let ledger: Ledger = read_or_miss(call).await.ok()??;
        all.totals.extend(ledger.totals);
    }
    Some(all)
}

/// At least one chunk, be it empty: a book that is asked nothing must still show that it can be read.
fn chunks(ids: &[PaymentId]) -> Vec<Vec<PaymentId>> {
    let mut chunks: Vec<_> = ids.chunks(REFERENCES_MAX).map(<[PaymentId]>::to_vec).collect();
    if chunks.is_empty() {
        chunks.push(Vec::new());
    }
    chunks
}

async fn book<T: serde::de::DeserializeOwned>(call: Call<'_>) -> Result<T, CallError> {
    call.until_settled(Instant::now() + ASK_FOR)
        .await
        .map(|answer| answer.body)
}

async fn read_or_miss<T: serde::de::DeserializeOwned>(call: Call<'_>) -> Result<Option<T>, Problem> {
    Ok(book(call).await.map_or_else(missed, Some))
}

fn missed<T>(error: CallError) -> Option<T> {
    tracing::warn!(%error, "the audit cannot read a book");
    None
}
