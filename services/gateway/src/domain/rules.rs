//! A call against the book of its reference: the line to append, or the refusal.
//!
//! *The key is everything.* A processor has no idea what a purchase is. A call with a key it has seen is the
//! same call, and gets the same line; a call with a new key is a new wish, and moves money again, even if
//! everything else about it is the same. Capturing one authorization twice with two keys takes the money
//! twice: over-capture is allowed here on purpose, as it is on many real accounts, because that is how double
//! charges are born and this project wants to count them.

use ticketing_types::billing::Card;
use ticketing_types::gateway::{Authorize, Capture, EntryKind, Refund, Void};
use ticketing_types::{Currency, Money, PaymentId};

use super::book::{Book, Line};
use super::card::{self, Manner, OnAuthorize};

/// What a merchant can ask for.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Authorize(Authorize),
    Capture(Capture),
    Void(Void),
    Refund(Refund),
}

impl Call {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Authorize(call) => &call.key,
            Self::Capture(call) => &call.key,
            Self::Void(call) => &call.key,
            Self::Refund(call) => &call.key,
        }
    }

    pub(crate) fn reference(&self) -> &PaymentId {
        match self {
            Self::Authorize(call) => &call.reference,
            Self::Capture(call) => &call.reference,
            Self::Void(call) => &call.reference,
            Self::Refund(call) => &call.reference,
        }
    }

    /// Whether `line` is what this very call left behind when it was made before. A void's amount is the
    /// ledger's own finding, not the caller's wish, so it is not compared.
    fn wrote(&self, line: &Line) -> bool {
        if self.reference() != &line.reference {
            return false;
        }
        match (self, line.kind) {
            (Self::Authorize(call), EntryKind::Authorize | EntryKind::Decline) => {
                call.amount == line.amount && Some(call.card) == line.card
            }
            (Self::Capture(call), EntryKind::Capture) => {
                call.amount == line.amount && line.authorization_id.as_ref() == Some(&call.authorization_id)
            }
            (Self::Void(call), EntryKind::Void) => call.authorization_id == line.authorization_id,
            (Self::Refund(call), EntryKind::Refund) => call.amount == line.amount,
            _ => false,
        }
    }
}

/// Why the ledger stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this key was used for another call")]
    KeyReused,
    #[error("this reference was voided: nothing is authorized for it any more")]
    ReferenceClosed,
    #[error("there is no such authorization of this reference")]
    AuthorizationNotFound,
    #[error("this authorization was voided")]
    AuthorizationVoided,
    #[error("the money was already captured: refund it instead")]
    AlreadyCaptured,
    #[error("a capture cannot exceed its authorization")]
    ExceedsAuthorization,
    #[error("the currency is not the one of the authorization")]
    CurrencyMismatch,
    #[error("only {refundable_minor} minor units can still be given back")]
    OverRefund { refundable_minor: i64 },
    #[error("the processor is not available, nothing was charged")]
    FailedBeforeCharging,
}

/// A line to append.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewLine {
    pub(crate) kind: EntryKind,
    pub(crate) card: Option<Card>,
    pub(crate) authorization_id: Option<String>,
    pub(crate) amount: Money,
    /// The reference accepts no authorization from here on.
    pub(crate) closes: bool,
    pub(crate) manner: Manner,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// It was made before: the same answer again.
    Replay(Line),
    /// Money moves (or a card is declined): this is written down.
    Append(NewLine),
}

/// Decides. `known` is the line that already carries the call's key, whichever reference it belongs to.
pub(crate) fn decide(call: &Call, known: Option<&Line>, book: &Book) -> Result<Decision, Refusal> {
    if let Some(line) = known {
        return if call.wrote(line) {
            Ok(Decision::Replay(line.clone()))
        } else {
            Err(Refusal::KeyReused)
        };
    }
    match call {
        Call::Authorize(call) => authorize(call, book),
        Call::Capture(call) => capture(call, book),
        Call::Void(call) => void(call, book),
        Call::Refund(call) => refund(call, book),
    }
    .map(Decision::Append)
}

fn authorize(call: &Authorize, book: &Book) -> Result<NewLine, Refusal> {
    if book.closed {
        return Err(Refusal::ReferenceClosed);
    }
    let charged = book.count(EntryKind::Authorize);
    let (kind, manner) = match card::on_authorize(call.card, book.authorize_attempts, charged) {
        OnAuthorize::Pay(manner) => (EntryKind::Authorize, manner),
        OnAuthorize::Decline => (EntryKind::Decline, Manner::AtOnce),
        OnAuthorize::Fail => return Err(Refusal::FailedBeforeCharging),
    };
    Ok(NewLine {
        kind,
        card: Some(call.card),
        authorization_id: None,
        amount: call.amount,
        closes: false,
        manner,
    })
}

fn capture(call: &Capture, book: &Book) -> Result<NewLine, Refusal> {
    let authorization = book
        .authorization(&call.authorization_id)
        .ok_or(Refusal::AuthorizationNotFound)?;
    if book.is_voided(&authorization.id) {
        return Err(Refusal::AuthorizationVoided);
    }
    if call.amount.currency() != authorization.amount.currency() {
        return Err(Refusal::CurrencyMismatch);
    }
    if call.amount.amount_minor() > authorization.amount.amount_minor() {
        return Err(Refusal::ExceedsAuthorization);
    }
    let captured = book.count(EntryKind::Capture);
    Ok(NewLine {
        kind: EntryKind::Capture,
        card: authorization.card,
        authorization_id: Some(authorization.id.clone()),
        amount: call.amount,
        closes: false,
        manner: authorization
            .card
            .map_or(Manner::AtOnce, |card| card::on_capture(card, captured)),
    })
}

fn void(call: &Void, book: &Book) -> Result<NewLine, Refusal> {
    let amount = match &call.authorization_id {
        Some(id) => {
            let authorization = book.authorization(id).ok_or(Refusal::AuthorizationNotFound)?;
            if book.is_captured(id) {
                return Err(Refusal::AlreadyCaptured);
            }
            authorization.amount
        }
        None if book.count(EntryKind::Capture) > 0 => return Err(Refusal::AlreadyCaptured),
        None => book
            .open_authorizations()
            .map(|line| line.amount)
            .reduce(|sum, amount| sum.plus(amount).unwrap_or(sum))
            .unwrap_or_else(nothing),
    };
    Ok(NewLine {
        kind: EntryKind::Void,
        card: None,
        authorization_id: call.authorization_id.clone(),
        amount,
        closes: call.authorization_id.is_none(),
        manner: Manner::AtOnce,
    })
}

fn refund(call: &Refund, book: &Book) -> Result<NewLine, Refusal> {
    if book
        .of_kind(EntryKind::Capture)
        .any(|line| line.amount.currency() != call.amount.currency())
    {
        return Err(Refusal::CurrencyMismatch);
    }
    let captured = book.sum_minor(EntryKind::Capture);
    let refundable_minor = captured - book.sum_minor(EntryKind::Refund);
    if call.amount.amount_minor() > refundable_minor {
        return Err(Refusal::OverRefund { refundable_minor });
    }
    Ok(NewLine {
        kind: EntryKind::Refund,
        card: None,
        authorization_id: None,
        amount: call.amount,
        closes: false,
        manner: Manner::AtOnce,
    })
}

/// A void that found nothing to give back has no currency: ISO 4217 calls that XXX.
fn nothing() -> Money {
    Money::zero(Currency::parse("XXX").expect("ISO 4217 lists XXX, \"no currency\""))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn eur(amount_minor: i64) -> Money {
        Money::new(amount_minor, Currency::parse("EUR").expect("a code")).expect("not negative")
    }

    fn reference() -> PaymentId {
        PaymentId::parse("p-1").expect("an id")
    }

    fn authorize(key: &str, card: Card) -> Call {
        Call::Authorize(Authorize {
            key: key.into(),
            reference: reference(),
            card,
            amount: eur(500),
        })
    }

    fn capture(key: &str, authorization_id: &str, amount_minor: i64) -> Call {
        Call::Capture(Capture {
            key: key.into(),
            reference: reference(),
            authorization_id: authorization_id.into(),
            amount: eur(amount_minor),
        })
    }

    fn void(key: &str) -> Call {
        Call::Void(Void {
            key: key.into(),
            reference: reference(),
            authorization_id: None,
        })
    }

    fn refund(key: &str, amount_minor: i64) -> Call {
        Call::Refund(Refund {
            key: key.into(),
            reference: reference(),
            amount: eur(amount_minor),
        })
    }

    /// Plays the store: the key looked up, the line appended under the key as its id.
    fn play(book: &mut Book, call: &Call) -> Result<Decision, Refusal> {
        if matches!(call, Call::Authorize(_)) {
            book.authorize_attempts += 1;
        }
        let known = book.lines.iter().find(|line| line.key == call.key()).cloned();
        let decision = decide(call, known.as_ref(), book)?;
        if let Decision::Append(line) = &decision {
            book.closed |= line.closes;
            book.lines.push(Line {
                id: call.key().into(),
                key: call.key().into(),
                reference: call.reference().clone(),
                kind: line.kind,
                card: line.card,
                authorization_id: line.authorization_id.clone(),
                amount: line.amount,
                at: DateTime::UNIX_EPOCH,
            });
        }
        Ok(decision)
    }

    #[test]
    fn the_same_key_is_the_same_charge_and_a_new_key_is_a_new_one() {
        let mut book = Book::default();
        let first = authorize("a", Card::CardOk);
        assert!(matches!(play(&mut book, &first), Ok(Decision::Append(_))));
        assert!(matches!(play(&mut book, &first), Ok(Decision::Replay(_))));
        assert!(matches!(
            play(&mut book, &authorize("b", Card::CardOk)),
            Ok(Decision::Append(_))
        ));
        assert_eq!(book.totals(reference()).authorizations, 2);

        assert!(play(&mut book, &capture("c", "a", 500)).is_ok());
        assert!(play(&mut book, &capture("c", "a", 500)).is_ok());
        assert!(play(&mut book, &capture("d", "a", 500)).is_ok());
        assert_eq!(
            book.totals(reference()).captured_minor,
            1000,
            "two keys take the money twice"
        );
    }

    #[test]
    fn a_key_with_another_body_is_refused() {
        let mut book = Book::default();
        play(&mut book, &authorize("a", Card::CardOk)).expect("authorized");
        assert_eq!(
            play(&mut book, &authorize("a", Card::CardSlow)),
            Err(Refusal::KeyReused)
        );
        assert_eq!(play(&mut book, &capture("a", "a", 500)), Err(Refusal::KeyReused));
        assert_eq!(book.lines.len(), 1);
    }

    #[test]
    fn a_void_of_the_reference_also_stops_an_authorization_still_on_its_way() {
        let mut book = Book::default();
        play(&mut book, &authorize("a", Card::CardOk)).expect("authorized");
        play(&mut book, &void("v")).expect("voided");
        assert_eq!(book.lines[1].amount, eur(500));
        assert_eq!(
            play(&mut book, &authorize("late", Card::CardOk)),
            Err(Refusal::ReferenceClosed)
        );
        assert_eq!(
            play(&mut book, &capture("c", "a", 500)),
            Err(Refusal::AuthorizationVoided)
        );
        assert_eq!(book.open_authorizations().count(), 0);
    }

    #[test]
    fn what_was_captured_is_refunded_not_voided_and_never_beyond() {
        let mut book = Book::default();
        play(&mut book, &authorize("a", Card::CardOk)).expect("authorized");
        assert_eq!(
            play(&mut book, &refund("r", 1)),
            Err(Refusal::OverRefund { refundable_minor: 0 })
        );
        assert_eq!(
            play(&mut book, &capture("c", "a", 501)),
            Err(Refusal::ExceedsAuthorization)
        );
        play(&mut book, &capture("c", "a", 500)).expect("captured");
        assert_eq!(play(&mut book, &void("v")), Err(Refusal::AlreadyCaptured));
        play(&mut book, &refund("r", 400)).expect("refunded");
        assert_eq!(
            play(&mut book, &refund("s", 101)),
            Err(Refusal::OverRefund {
                refundable_minor: 100
            })
        );
        play(&mut book, &refund("s", 100)).expect("refunded");
    }

    #[test]
    fn a_decline_is_remembered_under_its_key() {
        let mut book = Book::default();
        let call = authorize("a", Card::CardDeclined);
        let Ok(Decision::Append(line)) = play(&mut book, &call) else {
            panic!("a line")
        };
        assert_eq!(line.kind, EntryKind::Decline);
        assert!(matches!(play(&mut book, &call), Ok(Decision::Replay(_))));
        assert_eq!(book.totals(reference()).authorizations, 0);
    }

    #[test]
    fn a_void_before_anything_gives_nothing_back_and_closes_the_reference() {
        let mut book = Book::default();
        play(&mut book, &void("v")).expect("voided");
        assert_eq!(book.lines[0].amount.to_string(), "0 XXX");
        assert_eq!(
            play(&mut book, &authorize("a", Card::CardOk)),
            Err(Refusal::ReferenceClosed)
        );
    }
}
