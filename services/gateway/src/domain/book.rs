//! The lines of one reference, and what they add up to.

use chrono::{DateTime, Utc};
use ticketing_types::billing::Card;
use ticketing_types::gateway::{EntryKind, LedgerEntry, LedgerTotals};
use ticketing_types::{Money, PaymentId};

/// One line of the ledger, as it is kept. Lines are appended and never changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) reference: PaymentId,
    pub(crate) kind: EntryKind,
    pub(crate) card: Option<Card>,
    /// What a capture or a void is about; a void without one is about the whole reference.
    pub(crate) authorization_id: Option<String>,
    pub(crate) amount: Money,
    pub(crate) at: DateTime<Utc>,
}

impl From<Line> for LedgerEntry {
    fn from(line: Line) -> Self {
        Self {
            id: line.id,
            key: line.key,
            reference: line.reference,
            kind: line.kind,
            amount: line.amount,
            at: line.at,
        }
    }
}

/// Everything the processor knows of one reference.
#[derive(Debug, Clone, Default)]
pub(crate) struct Book {
    /// Authorizations tried, the one being decided included.
    pub(crate) authorize_attempts: i64,
    /// No authorization is accepted any more.
    pub(crate) closed: bool,
    /// In the order in which they were written.
    pub(crate) lines: Vec<Line>,
}

impl Book {
    pub(crate) fn of_kind(&self, kind: EntryKind) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.kind == kind)
    }

    pub(crate) fn count(&self, kind: EntryKind) -> usize {
        self.of_kind(kind).count()
    }

    /// Σ over the lines of a kind. Saturates: a ledger that overflows 63 bits refuses further lines elsewhere.
    pub(crate) fn sum_minor(&self, kind: EntryKind) -> i64 {
        self.of_kind(kind)
            .fold(0, |sum, line| sum.saturating_add(line.amount.amount_minor()))
    }

    pub(crate) fn authorization(&self, id: &str) -> Option<&Line> {
        self.of_kind(EntryKind::Authorize).find(|line| line.id == id)
    }

    pub(crate) fn is_captured(&self, authorization_id: &str) -> bool {
        self.names(EntryKind::Capture, authorization_id)
    }

    /// Given back, alone or with the whole reference.
    pub(crate) fn is_voided(&self, authorization_id: &str) -> bool {
        self.closed || self.names(EntryKind::Void, authorization_id)
    }

    /// Reservations that still bind the buyer's money.
    pub(crate) fn open_authorizations(&self) -> impl Iterator<Item = &Line> {
        self.of_kind(EntryKind::Authorize)
            .filter(|line| !self.is_captured(&line.id) && !self.is_voided(&line.id))
    }

    pub(crate) fn totals(&self, reference: PaymentId) -> LedgerTotals {
        let count = |kind| i64::try_from(self.count(kind)).unwrap_or(i64::MAX);
        LedgerTotals {
            reference,
            authorizations: count(EntryKind::Authorize),
            captures: count(EntryKind::Capture),
            captured_minor: self.sum_minor(EntryKind::Capture),
            refunded_minor: self.sum_minor(EntryKind::Refund),
        }
    }

    fn names(&self, kind: EntryKind, authorization_id: &str) -> bool {
        self.of_kind(kind)
            .any(|line| line.authorization_id.as_deref() == Some(authorization_id))
    }
}
