//! What a request means, given the rows of its payment. Pure: no clock, no database, no network.
//!
//! These are the "look, compare" halves of the critical section. They are the same under every strategy but
//! for one question, `claims`: without a lock the row itself says that somebody is at it, and a claimed
//! row is left alone. Under a lock (or none) whoever is inside may go on with any row it finds: a
//! predecessor that left an in-between status behind is gone, or (`none`) nobody cares.

use chrono::{DateTime, Utc};
use ticketing_types::billing::AuthorizePayment;

use super::error::PaymentError;
use super::payment::{Payment, Status, leading};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Nothing: this is the answer.
    Answer(Payment),
    /// Write a first row and ask the processor.
    Begin,
    /// Ask the processor to do the step on this row.
    Go(Payment),
    /// The capture of this row is in doubt: settle that first.
    SettleCapture(Payment),
}

/// Whether claims of others are respected, and the moment at which they are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claims {
    pub(crate) respected: bool,
    pub(crate) now: DateTime<Utc>,
}

impl Claims {
    fn check(self, row: &Payment) -> Result<(), PaymentError> {
        if self.respected && row.is_claimed(self.now) {
            Err(PaymentError::InProgress)
        } else {
            Ok(())
        }
    }
}

/// `PUT /v1/payments/{id}`.
pub(crate) fn authorize(
    rows: &[Payment],
    request: &AuthorizePayment,
    claims: Claims,
) -> Result<Next, PaymentError> {
    let Some(row) = leading(rows) else {
        return Ok(Next::Begin);
    };
    match &row.asked {
        None => return Err(PaymentError::Voided),
        Some(asked) if asked != request => return Err(PaymentError::Mismatch),
        Some(_) => {}
    }
    match row.status {
        Status::Authorized | Status::Capturing | Status::Captured => Ok(Next::Answer(row.clone())),
        Status::Authorizing => {
            claims.check(row)?;
            Ok(Next::Go(row.clone()))
        }
        Status::Declined => Err(PaymentError::Declined),
        Status::Voiding | Status::Voided => Err(PaymentError::Voided),
    }
}

/// `POST /v1/payments/{id}/capture`.
pub(crate) fn capture(rows: &[Payment], claims: Claims) -> Result<Next, PaymentError> {
    let row = leading(rows).ok_or(PaymentError::NotFound)?;
    match row.status {
        Status::Captured => Ok(Next::Answer(row.clone())),
        Status::Authorized => Ok(Next::Go(row.clone())),
        Status::Capturing => {
            claims.check(row)?;
            Ok(Next::Go(row.clone()))
        }
        Status::Authorizing => Err(PaymentError::NotAuthorized),
        Status::Declined => Err(PaymentError::Declined),
        Status::Voiding | Status::Voided => Err(PaymentError::Voided),
    }
}

/// `POST /v1/payments/{id}/void`.
///
/// Voiding while an authorization is under way is fine, also when it is somebody else's: the processor closes
/// the whole reference, so it does not matter which of the two arrives first. Voiding while a *capture* is in
/// doubt is not: what was perhaps taken must be known to be taken or not.
pub(crate) fn void(rows: &[Payment], claims: Claims) -> Result<Next, PaymentError> {
    let Some(row) = leading(rows) else {
        return Ok(Next::Begin);
    };
    match row.status {
        Status::Voided | Status::Declined => Ok(Next::Answer(row.clone())),
        Status::Authorizing | Status::Authorized => Ok(Next::Go(row.clone())),
        Status::Voiding => {
            claims.check(row)?;
            Ok(Next::Go(row.clone()))
        }
        Status::Capturing => {
            claims.check(row)?;
            Ok(Next::SettleCapture(row.clone()))
        }
        Status::Captured => Err(PaymentError::Captured),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ticketing_types::billing::Card;
    use ticketing_types::{Buyer, Currency, Money, PaymentId, Strategy};

    use super::*;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn claims(respected: bool) -> Claims {
        Claims { respected, now: NOW }
    }

    fn request(card: Card) -> AuthorizePayment {
        AuthorizePayment {
            buyer: Buyer::parse("alice").expect("a buyer"),
            amount: Money::new(500, Currency::parse("EUR").expect("a code")).expect("not negative"),
            card,
        }
    }

    fn row(status: Status) -> Payment {
        Payment {
            attempt_id: "a-1".into(),
            payment_id: PaymentId::parse("p-1").expect("an id"),
            strategy: Strategy::Raft,
            asked: Some(request(Card::CardOk)),
            status,
            authorization_id: None,
            capture_id: None,
            captured_minor: 0,
            refunded_minor: 0,
            fencing_token: None,
            version: 0,
            claimed_until: None,
            created_at: NOW,
        }
    }

    /// The outcome in one word: the table below then reads like the state diagram.
    fn word(next: Result<Next, PaymentError>) -> &'static str {
        match next {
            Ok(Next::Answer(_)) => "answer",
            Ok(Next::Begin) => "begin",
            Ok(Next::Go(_)) => "go",
            Ok(Next::SettleCapture(_)) => "settle capture",
            Err(PaymentError::Voided) => "voided",
            Err(PaymentError::Declined) => "declined",
            Err(PaymentError::Captured) => "captured",
            Err(PaymentError::NotAuthorized) => "not authorized",
            Err(PaymentError::NotFound) => "not found",
            Err(PaymentError::Mismatch) => "mismatch",
            Err(PaymentError::InProgress) => "in progress",
            Err(_) => "something else",
        }
    }

    #[test]
    fn every_status_means_something_to_every_request() {
        let put = request(Card::CardOk);
        for (status, authorized, captured, voided) in [
            (Status::Authorizing, "go", "not authorized", "go"),
            (Status::Authorized, "answer", "go", "go"),
            (Status::Capturing, "answer", "go", "settle capture"),
            (Status::Captured, "answer", "answer", "captured"),
            (Status::Voiding, "voided", "voided", "go"),
            (Status::Voided, "voided", "voided", "answer"),
            (Status::Declined, "declined", "declined", "answer"),
        ] {
            let rows = [row(status)];
            assert_eq!(
                word(authorize(&rows, &put, claims(true))),
                authorized,
                "authorize {status:?}"
            );
            assert_eq!(word(capture(&rows, claims(true))), captured, "capture {status:?}");
            assert_eq!(word(void(&rows, claims(true))), voided, "void {status:?}");
        }
        assert_eq!(word(authorize(&[], &put, claims(true))), "begin");
        assert_eq!(word(capture(&[], claims(true))), "not found");
        assert_eq!(word(void(&[], claims(true))), "begin");
    }

    #[test]
    fn a_claimed_row_is_left_alone_by_those_without_a_lock() {
        let claimed = |status| {
            let until = NOW + Duration::from_secs(1);
            [Payment {
                claimed_until: Some(until),
                ..row(status)
            }]
        };
        let put = request(Card::CardOk);
        let authorizing = claimed(Status::Authorizing);
        assert_eq!(word(authorize(&authorizing, &put, claims(true))), "in progress");
        assert_eq!(word(authorize(&authorizing, &put, claims(false))), "go");
        assert_eq!(
            word(void(&authorizing, claims(true))),
            "go",
            "a void may come from anywhere"
        );
        assert_eq!(
            word(capture(&claimed(Status::Capturing), claims(true))),
            "in progress"
        );
        assert_eq!(
            word(void(&claimed(Status::Capturing), claims(true))),
            "in progress"
        );
    }

    #[test]
    fn another_body_is_a_mismatch_in_every_status() {
        let put = request(Card::CardSlow);
        for status in Status::ALL {
            assert_eq!(
                word(authorize(&[row(status)], &put, claims(true))),
                "mismatch",
                "{status:?}"
            );
        }
        let closed = Payment {
            asked: None,
            ..row(Status::Voided)
        };
        assert_eq!(word(authorize(&[closed], &put, claims(true))), "voided");
    }

    #[test]
    fn of_several_rows_the_one_where_money_moved_speaks() {
        let rows = [
            row(Status::Authorizing),
            row(Status::Authorized),
            row(Status::Captured),
        ];
        assert_eq!(leading(&rows).map(|row| row.status), Some(Status::Captured));
        assert_eq!(
            leading(&rows[..2]).map(|row| row.status),
            Some(Status::Authorized)
        );
    }
}
