//! The books of an honest sale, for others to break.

use ticketing_types::billing::{BillingRecords, PaymentRecord, PaymentStatus};
use ticketing_types::checkout::CheckoutRecords;
use ticketing_types::gateway::{Ledger, LedgerTotals};
use ticketing_types::inventory::{Availability, EventView, HoldRecord, HoldStatus, InventoryRecords};
use ticketing_types::{Buyer, Currency, Money, PaymentKey, PurchaseId, Strategy};

use super::super::*;

pub(super) const PRICE: i64 = 5000;

pub(super) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("a time")
}

pub(super) fn event_id() -> EventId {
    EventId::parse("gala").expect("an id")
}

/// How one purchase of an honest sale ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Completed,
    Declined,
    SoldOut,
    Cancelled,
    Expired,
}

/// The books of a sale in which everything went as it should.
pub(super) fn honest(capacity: i64, purchases: &[(i64, End)]) -> Books {
    let mut books = empty(capacity);
    for &(quantity, end) in purchases {
        add(&mut books, quantity, end);
    }
    books
}

pub(super) fn empty(capacity: i64) -> Books {
    let event = EventView {
        id: event_id(),
        name: "Gala".into(),
        capacity,
        price: Money::new(PRICE, Currency::parse("EUR").expect("a code")).expect("not negative"),
        max_per_buyer: None,
        available: capacity,
        held: 0,
        sold: 0,
        oversold: 0,
        availability: Availability::Available,
        created_at: now(),
    };
    Books {
        inventory: Some(InventoryRecords {
            event,
            holds: vec![],
            stale_tokens_rejected: 0,
            accepted_tokens: vec![],
        }),
        checkout: Some(CheckoutRecords {
            purchases: vec![],
            stale_tokens_rejected: 0,
        }),
        billing: Some(BillingRecords {
            payments: vec![],
            stale_tokens_rejected: 0,
        }),
        gateway: Some(Ledger { totals: vec![] }),
    }
}

pub(super) fn add(books: &mut Books, quantity: i64, end: End) {
    let (inventory, checkout, billing, gateway) = all_mut(books);
    let n = checkout.purchases.len();
    let id = PurchaseId::parse(format!("p-{n}")).expect("an id");
    let amount = quantity * PRICE;
    // Who finds too few seats is refused, whatever the plan was.
    let end = if inventory.event.available < quantity {
        End::SoldOut
    } else {
        end
    };
    let (status, reason) = match end {
        End::Completed => (PurchaseStatus::Completed, None),
        End::Cancelled => (PurchaseStatus::Cancelled, None),
        End::Declined => (PurchaseStatus::Rejected, Some("payment-declined")),
        End::SoldOut => (PurchaseStatus::Rejected, Some("sold-out")),
        End::Expired => (PurchaseStatus::Rejected, Some("hold-expired")),
    };
    checkout.purchases.push(PurchaseRecord {
        id: id.clone(),
        buyer: Buyer::parse(format!("buyer-{n}")).expect("a buyer"),
        idempotency_key: format!("key-{n}"),
        status,
        reason: reason.map(str::to_owned),
        amount_minor: (!matches!(end, End::SoldOut)).then_some(amount),
        quantity,
        quantity_all: quantity,
        strategy: Strategy::Raft,
        payment_key: PaymentKey::Stable,
        created_at: now(),
        updated_at: now(),
    });
    if matches!(end, End::SoldOut) {
        return;
    }
    let sold = matches!(end, End::Completed | End::Cancelled);
    let hold_status = match end {
        End::Completed | End::Cancelled => HoldStatus::Confirmed,
        End::Expired => HoldStatus::Expired,
        End::Declined | End::SoldOut => HoldStatus::Released,
    };
    let token = inventory.holds.len() as i64 + 1;
    inventory.holds.push(HoldRecord {
        id: id.hold(),
        status: hold_status,
        quantity,
        tickets: if sold { quantity } else { 0 },
        expires_at: now(),
        strategy: Strategy::Raft,
        fencing_token: Some(token),
    });
    inventory.accepted_tokens.push(token);
    if sold {
        inventory.event.available -= quantity;
        inventory.event.sold += quantity;
    }
    let refunded_minor = if matches!(end, End::Cancelled) { amount } else { 0 };
    let (status, captured_minor) = match end {
        End::Completed | End::Cancelled => (PaymentStatus::Captured, amount),
        End::Declined => (PaymentStatus::Declined, 0),
        End::Expired | End::SoldOut => (PaymentStatus::Voided, 0),
    };
    billing.payments.push(PaymentRecord {
        id: id.payment(),
        status,
        captured_minor,
        refunded_minor,
    });
    gateway.totals.push(LedgerTotals {
        reference: id.payment(),
        authorizations: 1,
        captures: i64::from(sold),
        captured_minor,
        refunded_minor,
    });
}

pub(super) type AllBooks<'a> = (
    &'a mut InventoryRecords,
    &'a mut CheckoutRecords,
    &'a mut BillingRecords,
    &'a mut Ledger,
);

pub(super) fn all_mut(books: &mut Books) -> AllBooks<'_> {
    let Books {
        inventory,
        checkout,
        billing,
        gateway,
    } = books;
    (
        inventory.as_mut().expect("a book"),
        checkout.as_mut().expect("a book"),
        billing.as_mut().expect("a book"),
        gateway.as_mut().expect("a book"),
    )
}
