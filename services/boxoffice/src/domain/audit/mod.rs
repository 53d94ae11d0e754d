//! The audit: reads every service's own book and the card processor's, and says of each promise whether it was
//! kept (DESIGN §8). Pure: books in, verdicts out.
//!
//! An auditor who trusted one book could be fooled by it. So each number is taken from the book that cannot
//! help telling it: tickets from inventory's tickets (not from its counter), charges from the processor's
//! ledger (not from billing), intentions from checkout. A promise is then a sentence that *two* books must
//! agree on.
//!
//! | | what must be true | books |
//! |---|---|---|
//! | I1 | capacity = available + held + sold, none below 0 | inventory |
//! | I2 | no more sold than there are seats; every ticket belongs to a finished purchase | inventory, checkout |
//! | I3 | charged = total for a completed purchase, 0 for any other, at most once | checkout, processor |
//! | I4 | one buyer and key: at most one purchase, at most one charge | checkout, processor |
//! | I5 | no more given back than taken | processor, billing |
//! | I6 | nothing unfinished beyond its time | all but the processor |
//! | I7 | each hold given back or turned into tickets, never both | inventory, checkout |
//! | I8 | accepted writes carry tokens that never fall | inventory |
//! | I10 | nobody was turned away from a seat that was free | inventory, checkout |
//!
//! I9 (contention is never a 5xx but 503) leaves no trace in books: the buyers of a round judge it.
//!
//! A book that cannot be read makes the sentences that need it *unknown*, unless the other book alone already
//! breaks them. A purchase that is still at it makes them unknown too: an audit is right at rest.

mod books;
mod findings;
mod invariants;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use ticketing_types::EventId;
use ticketing_types::audit::{AuditReport, PurchaseCounts, Verdict};
use ticketing_types::checkout::{PurchaseRecord, PurchaseStatus};

pub(crate) use books::Books;
use books::View;

/// Judges one event.
pub(crate) fn judge(event_id: &EventId, books: &Books, now: DateTime<Utc>) -> AuditReport {
    let view = View::of(books, now);
    let stock = books.inventory.as_ref().map(|inventory| &inventory.event);
    let invariants: BTreeMap<_, _> = invariants::all(&view)
        .into_iter()
        .map(|(name, invariant)| (name.to_owned(), invariant))
        .collect();
    let verdict = Verdict::all(invariants.values().map(|invariant| invariant.verdict));
    let (sold, capacity) = stock.map_or((0, 0), |stock| (stock.sold, stock.capacity));
    AuditReport {
        event_id: event_id.clone(),
        capacity,
        available: stock.map_or(0, |stock| stock.available),
        held: stock.map_or(0, |stock| stock.held),
        sold,
        oversold: (sold - capacity).max(0),
        undersold: view.undersold(),
        purchases: counts(view.purchases()),
        charged: count(&view, |p| view.captures(p) > 0),
        double_charged: view.charges_too_many(),
        charged_without_ticket: count(&view, |p| {
            p.status != PurchaseStatus::Pending && view.net_minor(p) > 0 && view.tickets(p) == Some(0)
        }),
        ticket_without_charge: count(&view, |p| {
            let owes = p.amount_minor.is_none_or(|amount| amount > 0);
            let has_tickets = view.tickets(p).is_some_and(|tickets| tickets > 0);
            p.status != PurchaseStatus::Pending && owes && has_tickets && view.unpaid(p)
        }),
        stale_tokens_rejected: books.stale_tokens_rejected(),
        invariants,
        verdict,
    }
}

fn count(view: &View<'_>, is: impl Fn(&PurchaseRecord) -> bool) -> i64 {
    view.purchases().iter().filter(|purchase| is(purchase)).count() as i64
}

fn counts(purchases: &[PurchaseRecord]) -> PurchaseCounts {
    let mut counts = PurchaseCounts::default();
    for purchase in purchases {
        let counter = match (purchase.status, purchase.reason.as_deref()) {
            (PurchaseStatus::Completed, _) => &mut counts.completed,
            (PurchaseStatus::Pending, _) => &mut counts.pending,
            (PurchaseStatus::Rejected, Some("payment-declined")) => &mut counts.declined,
            (PurchaseStatus::Rejected, Some("sold-out")) => &mut counts.sold_out,
            (PurchaseStatus::Rejected | PurchaseStatus::Cancelled, _) => &mut counts.other,
        };
        *counter += 1;
    }
    counts
}

#[cfg(test)]
mod tests;
