//! The four books, and the questions that the promises ask of them.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use ticketing_types::billing::{BillingRecords, PaymentRecord};
use ticketing_types::checkout::{CheckoutRecords, PurchaseRecord, PurchaseStatus};
use ticketing_types::gateway::{Ledger, LedgerTotals};
use ticketing_types::inventory::{HoldRecord, HoldStatus, InventoryRecords};

/// How long after its hold's end a purchase may still be at it: the recovery worker looks for stale ones after
/// a few seconds and then needs a moment.
pub(super) const GRACE: TimeDelta = TimeDelta::seconds(30);
/// How long a purchase may be at it that has no hold yet: its whole budget, waiting for locks included.
const BUDGET: TimeDelta = TimeDelta::seconds(60);

/// What could be read. `None`: could not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    /// Stock, holds and tickets.
    pub(crate) inventory: Option<InventoryRecords>,
    /// Purchases.
    pub(crate) checkout: Option<CheckoutRecords>,
    /// Payments.
    pub(crate) billing: Option<BillingRecords>,
    /// The processor's own ledger.
    pub(crate) gateway: Option<Ledger>,
}

impl Books {
    pub(super) fn stale_tokens_rejected(&self) -> i64 {
        let inventory = self.inventory.as_ref().map_or(0, |b| b.stale_tokens_rejected);
        let checkout = self.checkout.as_ref().map_or(0, |b| b.stale_tokens_rejected);
        let billing = self.billing.as_ref().map_or(0, |b| b.stale_tokens_rejected);
        inventory + checkout + billing
    }
}

/// The books, indexed by the one name that a purchase, its hold and its payment share.
pub(super) struct View<'a> {
    pub(super) books: &'a Books,
    pub(super) now: DateTime<Utc>,
    holds: HashMap<&'a str, &'a HoldRecord>,
    ledger: HashMap<&'a str, &'a LedgerTotals>,
    payments: HashMap<&'a str, Vec<&'a PaymentRecord>>,
}

impl<'a> View<'a> {
    pub(super) fn of(books: &'a Books, now: DateTime<Utc>) -> Self {
        let holds = books
            .inventory
            .iter()
            .flat_map(|b| &b.holds)
            .map(|h| (h.id.as_str(), h))
            .collect();
        let ledger = books
            .gateway
            .iter()
            .flat_map(|b| &b.totals)
            .map(|t| (t.reference.as_str(), t))
            .collect();
        let mut payments: HashMap<&str, Vec<&PaymentRecord>> = HashMap::new();
        for payment in books.billing.iter().flat_map(|b| &b.payments) {
            payments.entry(payment.id.as_str()).or_default().push(payment);
        }
        Self {
            books,
            now,
            holds,
            ledger,
            payments,
        }
    }

    pub(super) fn purchases(&self) -> &'a [PurchaseRecord] {
        self.books.checkout.as_ref().map_or(&[], |book| &book.purchases)
    }

    pub(super) fn holds(&self) -> &'a [HoldRecord] {
        self.books.inventory.as_ref().map_or(&[], |book| &book.holds)
    }

    pub(super) fn hold(&self, purchase: &PurchaseRecord) -> Option<&'a HoldRecord> {
        self.holds.get(purchase.id.as_str()).copied()
    }

    pub(super) fn payments(&self, purchase: &PurchaseRecord) -> &[&'a PaymentRecord] {
        self.payments.get(purchase.id.as_str()).map_or(&[], Vec::as_slice)
    }

    /// Tickets of this event that exist for a purchase; `None` when inventory cannot be read.
    pub(super) fn tickets(&self, purchase: &PurchaseRecord) -> Option<i64> {
        self.books.inventory.as_ref()?;
        Some(self.hold(purchase).map_or(0, |hold| hold.tickets))
    }

    /// How often the processor took money for a purchase.
    pub(super) fn captures(&self, purchase: &PurchaseRecord) -> i64 {
        self.ledger
            .get(purchase.id.as_str())
            .map_or(0, |totals| totals.captures)
    }

    /// What the processor took and did not give back, in minor units.
    pub(super) fn net_minor(&self, purchase: &PurchaseRecord) -> i64 {
        let net = |totals: &&LedgerTotals| totals.captured_minor - totals.refunded_minor;
        self.ledger.get(purchase.id.as_str()).map_or(0, net)
    }

    /// The processor never took anything; `false` when its ledger cannot be read.
    pub(super) fn unpaid(&self, purchase: &PurchaseRecord) -> bool {
        self.books.gateway.is_some() && self.captures(purchase) == 0
    }

    pub(super) fn by_key(&self) -> BTreeMap<(&'a str, &'a str), Vec<&'a PurchaseRecord>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for purchase in self.purchases() {
            let key = (purchase.buyer.as_str(), purchase.idempotency_key.as_str());
            groups.entry(key).or_default().push(purchase);
        }
        groups
    }

    /// Captures beyond the first, per buyer and key.
    pub(super) fn charges_too_many(&self) -> i64 {
        let captures = |group: &Vec<&PurchaseRecord>| group.iter().map(|p| self.captures(p)).sum::<i64>();
        self.by_key()
            .values()
            .map(|group| (captures(group) - 1).max(0))
            .sum()
    }

    /// Purchases that somebody is still at.
    pub(super) fn pending(&self) -> impl Iterator<Item = &'a PurchaseRecord> {
        self.purchases()
            .iter()
            .filter(|p| p.status == PurchaseStatus::Pending)
    }

    /// When a pending purchase must be over.
    pub(super) fn must_be_over_at(&self, purchase: &PurchaseRecord) -> DateTime<Utc> {
        let by_budget = purchase.created_at + BUDGET;
        self.hold(purchase)
            .map_or(by_budget, |hold| hold.expires_at.max(by_budget))
            + GRACE
    }

    /// No purchase is pending and no hold stands.
    pub(super) fn at_rest(&self) -> bool {
        let none_held = self.books.inventory.as_ref().is_some_and(|b| b.event.held == 0);
        self.books.checkout.is_some() && none_held && self.pending().next().is_none()
    }

    /// How many tickets the purchases wanted that were refused as sold out. A cart of several events may have
    /// been refused for another one.
    fn refused(&self) -> impl Iterator<Item = i64> {
        let refused =
            |p: &&PurchaseRecord| p.reason.as_deref() == Some("sold-out") && p.quantity == p.quantity_all;
        self.purchases().iter().filter(refused).map(|p| p.quantity)
    }

    /// Tickets that were refused as sold out.
    pub(super) fn refused_tickets(&self) -> i64 {
        self.refused().sum()
    }

    /// Tickets that stood in a hold for a while and came back: whoever was refused meanwhile was rightly so.
    fn returned_tickets(&self) -> i64 {
        let returned = |h: &&HoldRecord| matches!(h.status, HoldStatus::Released | HoldStatus::Expired);
        self.holds().iter().filter(returned).map(|h| h.quantity).sum()
    }

    /// Seats that are left although buyers were turned away who would have fitted: what is left now, and was
    /// not in a hold meanwhile, was free all the time. A buyer of two is rightly refused the last one.
    pub(super) fn undersold(&self) -> i64 {
        let Some(inventory) = self.books.inventory.as_ref().filter(|_| self.at_rest()) else {
            return 0;
        };
        let always_free = inventory.event.capacity - inventory.event.sold - self.returned_tickets();
        let wanted: i64 = self.refused().filter(|&quantity| quantity <= always_free).sum();
        wanted.min(always_free).max(0)
    }
}
