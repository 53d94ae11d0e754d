//! One function per promise; each gives a verdict and the numbers behind it in a sentence.
//!
//! All of them in one long file, so that the judge can be read from I1 to I10 in one go.

use ticketing_types::audit::Invariant;
use ticketing_types::billing::PaymentStatus;
use ticketing_types::checkout::PurchaseStatus;
use ticketing_types::inventory::HoldStatus;

use super::books::{GRACE, View};
use super::findings::Findings;

/// All promises that books can tell of.
pub(super) fn all(view: &View<'_>) -> Vec<(&'static str, Invariant)> {
    vec![
        ("I1", stock_adds_up(view)),
        ("I2", sold_within_capacity(view)),
        ("I3", charged_what_it_costs(view)),
        ("I4", one_purchase_per_key(view)),
        ("I5", refunds_within_captures(view)),
        ("I6", nothing_unfinished(view)),
        ("I7", each_hold_ends_once(view)),
        ("I8", tokens_never_fall(view)),
        ("I10", nobody_refused_a_free_seat(view)),
    ]
}

fn stock_adds_up(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    let Some(inventory) = &view.books.inventory else {
        findings.missing("inventory");
        return findings.or_pass(String::new());
    };
    let event = &inventory.event;
    let sum = event.available + event.held + event.sold;
    let equation = format!(
        "{} available + {} held + {} sold",
        event.available, event.held, event.sold
    );
    if sum != event.capacity {
        findings.broken(format!(
            "{equation} = {sum}, and there are {} seats",
            event.capacity
        ));
    }
    if event.available < 0 || event.held < 0 || event.sold < 0 {
        findings.broken(format!("a number is below 0: {equation}"));
    }
    findings.or_pass(format!("{} seats = {equation}", event.capacity))
}

fn sold_within_capacity(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    let purchases = view.purchases();
    let tickets_of = |statuses: &[PurchaseStatus]| -> i64 {
        purchases
            .iter()
            .filter(|p| statuses.contains(&p.status))
            .map(|p| p.quantity)
            .sum()
    };
    let finished = tickets_of(&[PurchaseStatus::Completed, PurchaseStatus::Cancelled]);
    let pending = tickets_of(&[PurchaseStatus::Pending]);
    let mut kept = String::new();
    match &view.books.inventory {
        None => findings.missing("inventory"),
        Some(inventory) => {
            let (sold, capacity) = (inventory.event.sold, inventory.event.capacity);
            kept = format!("{sold} of {capacity} seats sold, all to finished purchases");
            if sold > capacity {
                findings.broken(format!(
                    "{sold} tickets for {capacity} seats: {} too many",
                    sold - capacity
                ));
            }
            if view.books.checkout.is_some() && sold != finished {
                let text = format!("{sold} tickets exist and finished purchases have {finished}");
                if (finished..=finished + pending).contains(&sold) {
                    findings.open(format!("{text}; purchases with {pending} are still pending"));
                } else {
                    findings.broken(text);
                }
            }
        }
    }
    if view.books.checkout.is_none() {
        findings.missing("checkout");
    }
    findings.or_pass(kept)
}

fn charged_what_it_costs(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    for book in missing(&[
        (view.books.checkout.is_none(), "checkout"),
        (view.books.gateway.is_none(), "the processor's ledger"),
    ]) {
        findings.missing(book);
    }
    let mut pending = 0;
    let mut total_minor = 0;
    if view.books.gateway.is_some() {
        for purchase in view.purchases() {
            let (captures, net) = (view.captures(purchase), view.net_minor(purchase));
            let due = match purchase.status {
                PurchaseStatus::Completed => purchase.amount_minor,
                PurchaseStatus::Rejected | PurchaseStatus::Cancelled => Some(0),
                PurchaseStatus::Pending => {
                    pending += 1;
                    Some(net)
                }
            };
            total_minor += net;
            let id = &purchase.id;
            if captures > 1 {
                findings.broken(format!("{id} was captured {captures} times"));
            } else if due != Some(net) {
                let due = due.map_or("an unknown amount".to_owned(), |due| due.to_string());
                findings.broken(format!(
                    "{id} is {} and was charged {net}, not {due}",
                    status(purchase.status)
                ));
            }
        }
    }
    if pending > 0 {
        findings.open(format!("{pending} purchases are still pending"));
    }
    findings.or_pass(format!(
        "{} purchases, each charged once what it costs or not at all; {total_minor} taken, in minor units",
        view.purchases().len()
    ))
}

fn one_purchase_per_key(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    for book in missing(&[
        (view.books.checkout.is_none(), "checkout"),
        (view.books.gateway.is_none(), "the processor's ledger"),
    ]) {
        findings.missing(book);
    }
    let groups = view.by_key();
    for ((buyer, key), group) in &groups {
        let captures: i64 = group.iter().map(|p| view.captures(p)).sum();
        if group.len() > 1 || captures > 1 {
            findings.broken(format!(
                "{buyer} with key {key} has {} and {}",
                plural(group.len() as i64, "purchase"),
                plural(captures, "charge"),
            ));
        }
    }
    findings.or_pass(format!(
        "{} keys, each with one purchase and at most one charge",
        groups.len()
    ))
}

fn refunds_within_captures(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    let mut refunded_minor = 0;
    match &view.books.gateway {
        None => findings.missing("the processor's ledger"),
        Some(ledger) => {
            for totals in &ledger.totals {
                refunded_minor += totals.refunded_minor;
                if totals.refunded_minor > totals.captured_minor {
                    findings.broken(format!(
                        "the processor gave back {} of {} for {}",
                        totals.refunded_minor, totals.captured_minor, totals.reference
                    ));
                }
            }
        }
    }
    match &view.books.billing {
        None => findings.missing("billing"),
        Some(billing) => {
            for payment in &billing.payments {
                if payment.refunded_minor > payment.captured_minor {
                    findings.broken(format!(
                        "billing gave back {} of {} for {}",
                        payment.refunded_minor, payment.captured_minor, payment.id
                    ));
                }
            }
        }
    }
    findings.or_pass(format!(
        "{refunded_minor} given back, in minor units, never more than was taken"
    ))
}

fn nothing_unfinished(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    for book in missing(&[
        (view.books.checkout.is_none(), "checkout"),
        (view.books.inventory.is_none(), "inventory"),
        (view.books.billing.is_none(), "billing"),
    ]) {
        findings.missing(book);
    }
    let mut young = 0;
    for purchase in view.pending() {
        if view.now > view.must_be_over_at(purchase) {
            let age = (view.now - purchase.created_at).num_seconds();
            findings.broken(format!("{} is pending since {age} s", purchase.id));
        } else {
            young += 1;
        }
    }
    if young > 0 {
        findings.open(format!(
            "{} still pending, within their time",
            plural(young, "purchase")
        ));
    }
    let mut standing = 0;
    for hold in view
        .holds()
        .iter()
        .filter(|hold| hold.status == HoldStatus::Placed)
    {
        standing += 1;
        if view.now > hold.expires_at + GRACE {
            let late = (view.now - hold.expires_at).num_seconds();
            findings.broken(format!(
                "hold {} expired {late} s ago and is still counted",
                hold.id
            ));
        }
    }
    for purchase in view
        .purchases()
        .iter()
        .filter(|p| p.status != PurchaseStatus::Pending)
    {
        let open = |status| matches!(status, PaymentStatus::Authorizing | PaymentStatus::Authorized);
        if !view.payments(purchase).iter().any(|payment| open(payment.status)) {
            continue;
        }
        let text = format!(
            "{} is {} and its payment is still open",
            purchase.id,
            status(purchase.status)
        );
        if view.now > purchase.updated_at + GRACE {
            findings.broken(text);
        } else {
            findings.open(text);
        }
    }
    findings.or_pass(match standing {
        0 => "no purchase is pending, no hold stands, no payment is open".to_owned(),
        n => format!("no purchase is pending; {} within their time", plural(n, "hold")),
    })
}

fn each_hold_ends_once(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    for book in missing(&[
        (view.books.inventory.is_none(), "inventory"),
        (view.books.checkout.is_none(), "checkout"),
    ]) {
        findings.missing(book);
    }
    for hold in view.holds() {
        let due = if hold.status == HoldStatus::Confirmed {
            hold.quantity
        } else {
            0
        };
        if hold.tickets != due {
            let name = format!("{:?}", hold.status).to_lowercase();
            findings.broken(format!(
                "hold {} of {} is {name} and has {}",
                hold.id,
                hold.quantity,
                plural(hold.tickets, "ticket")
            ));
        }
    }
    if view.books.inventory.is_some() {
        for purchase in view.purchases() {
            let confirmed = view
                .hold(purchase)
                .is_some_and(|hold| hold.status == HoldStatus::Confirmed);
            let due = match purchase.status {
                PurchaseStatus::Completed | PurchaseStatus::Cancelled => true,
                PurchaseStatus::Rejected => false,
                PurchaseStatus::Pending => confirmed,
            };
            if confirmed != due {
                let is = if confirmed {
                    "became tickets"
                } else {
                    "did not become tickets"
                };
                findings.broken(format!(
                    "{} is {} and its hold {is}",
                    purchase.id,
                    status(purchase.status)
                ));
            }
        }
    }
    if let Some(inventory) = &view.books.inventory {
        let of = |status| -> i64 {
            let those = inventory.holds.iter().filter(|hold| hold.status == status);
            those.map(|hold| hold.quantity).sum()
        };
        let tickets: i64 = inventory.holds.iter().map(|hold| hold.tickets).sum();
        for (what, counted, summed) in [
            ("held", inventory.event.held, of(HoldStatus::Placed)),
            ("sold", inventory.event.sold, tickets),
        ] {
            if counted != summed {
                findings.broken(format!("{counted} are {what} and the holds sum up to {summed}"));
            }
        }
    }
    findings.or_pass(format!(
        "{} holds, each given back, expired or turned into its tickets",
        view.holds().len()
    ))
}

fn tokens_never_fall(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    let Some(inventory) = &view.books.inventory else {
        findings.missing("inventory");
        return findings.or_pass(String::new());
    };
    let tokens = &inventory.accepted_tokens;
    for pair in tokens.windows(2) {
        if pair[1] < pair[0] {
            findings.broken(format!("token {} was accepted after {}", pair[1], pair[0]));
        }
    }
    let refused = inventory.stale_tokens_rejected;
    findings.or_pass(match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => {
            format!(
                "{} fenced writes, tokens {first} to {last}, none falling; {refused} stale ones refused",
                tokens.len()
            )
        }
        _ => "no write carried a token".to_owned(),
    })
}

fn nobody_refused_a_free_seat(view: &View<'_>) -> Invariant {
    let mut findings = Findings::default();
    for book in missing(&[
        (view.books.inventory.is_none(), "inventory"),
        (view.books.checkout.is_none(), "checkout"),
    ]) {
        findings.missing(book);
    }
    let Some(inventory) = &view.books.inventory else {
        return findings.or_pass(String::new());
    };
    let left = (inventory.event.capacity - inventory.event.sold).max(0);
    let refused = view.refused_tickets();
    let undersold = view.undersold();
    let seats = if left == 1 {
        "1 seat is".to_owned()
    } else {
        format!("{left} seats are")
    };
    if undersold > 0 {
        findings.broken(format!(
            "{seats} left, and buyers of {undersold} were told that all are gone"
        ));
    } else if left > 0 && refused > 0 && !view.at_rest() {
        findings.open(format!(
            "{seats} left by now, {refused} were refused, and it is not at rest"
        ));
    }
    findings.or_pass(match (left, refused) {
        (0, _) => "every seat is sold".to_owned(),
        (_, 0) => format!("{seats} left, and nobody was told that all are gone"),
        _ => format!("{seats} left; on hold, or too few, when buyers of {refused} were refused"),
    })
}

fn missing<'a>(books: &[(bool, &'a str)]) -> Vec<&'a str> {
    books
        .iter()
        .filter(|(is_missing, _)| *is_missing)
        .map(|(_, book)| *book)
        .collect()
}

fn plural(n: i64, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

fn status(status: PurchaseStatus) -> &'static str {
    match status {
        PurchaseStatus::Pending => "pending",
        PurchaseStatus::Completed => "completed",
        PurchaseStatus::Rejected => "rejected",
        PurchaseStatus::Cancelled => "cancelled",
    }
}
