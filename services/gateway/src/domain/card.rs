//! The test cards. Each stands for one way in which real processors make life hard.
//!
//! How a card behaves depends on the reference's own history alone, which is in the database: the same story
//! is told after a restart, and two references never disturb one another.

use ticketing_types::billing::Card;

/// How an answer leaves the house once the money has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As soon as it is known.
    AtOnce,
    /// Later than any sensible client waits.
    Late,
    /// Not at all: the connection is dropped.
    Lost,
}

/// What a card does when it is asked to pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnAuthorize {
    /// Reserves the money, and answers in this manner.
    Pay(Manner),
    /// Says no.
    Decline,
    /// Breaks before anything was charged.
    Fail,
}

/// `attempt` counts the authorizations tried for this reference, this one included; `charged` those that
/// went through before.
pub(crate) fn on_authorize(card: Card, attempt: i64, charged: usize) -> OnAuthorize {
    let first_charge = charged == 0;
    match card {
        Card::CardDeclined => OnAuthorize::Decline,
        Card::CardFlaky if attempt <= 1 => OnAuthorize::Fail,
        Card::CardSlow if first_charge => OnAuthorize::Pay(Manner::Late),
        Card::CardLostReply if first_charge => OnAuthorize::Pay(Manner::Lost),
        Card::CardOk | Card::CardFlaky | Card::CardSlow | Card::CardLostReply => {
            OnAuthorize::Pay(Manner::AtOnce)
        }
    }
}

/// How the answer to a capture leaves the house; `captured` counts the captures of the reference before it.
pub(crate) fn on_capture(card: Card, captured: usize) -> Manner {
    match card {
        Card::CardLostReply if captured == 0 => Manner::Lost,
        _ => Manner::AtOnce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_card_tells_its_own_story_once_per_reference() {
        use OnAuthorize::{Decline, Fail, Pay};
        let story = |card, attempt, charged| on_authorize(card, attempt, charged);
        assert_eq!(story(Card::CardOk, 1, 0), Pay(Manner::AtOnce));
        assert_eq!(story(Card::CardDeclined, 5, 0), Decline);
        assert_eq!(story(Card::CardFlaky, 1, 0), Fail);
        assert_eq!(story(Card::CardFlaky, 2, 0), Pay(Manner::AtOnce));
        assert_eq!(story(Card::CardSlow, 1, 0), Pay(Manner::Late));
        assert_eq!(story(Card::CardSlow, 2, 1), Pay(Manner::AtOnce));
        assert_eq!(story(Card::CardLostReply, 1, 0), Pay(Manner::Lost));
        assert_eq!(story(Card::CardLostReply, 2, 1), Pay(Manner::AtOnce));
        assert_eq!(on_capture(Card::CardLostReply, 0), Manner::Lost);
        assert_eq!(on_capture(Card::CardLostReply, 1), Manner::AtOnce);
        assert_eq!(on_capture(Card::CardOk, 0), Manner::AtOnce);
    }
}
