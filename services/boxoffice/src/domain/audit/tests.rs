mod sale;

use chrono::TimeDelta;
use proptest::prelude::*;
use ticketing_types::billing::PaymentStatus;
use ticketing_types::inventory::HoldStatus;

use self::sale::{End, PRICE, add, all_mut, event_id, honest, now};
use super::*;

/// Two seats, two sales, one decline, one refusal.
fn small() -> Books {
    honest(
        2,
        &[
            (1, End::Declined),
            (1, End::Completed),
            (1, End::Completed),
            (1, End::SoldOut),
        ],
    )
}

fn report(books: &Books) -> AuditReport {
    judge(&event_id(), books, now())
}

fn verdict(books: &Books, name: &str) -> Verdict {
    report(books).invariants[name].verdict
}

#[test]
fn an_honest_sale_passes_and_its_numbers_are_right() {
    let report = report(&small());
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.invariants);
    assert_eq!(
        (report.capacity, report.available, report.sold, report.oversold),
        (2, 0, 2, 0)
    );
    let expected = PurchaseCounts {
        completed: 2,
        declined: 1,
        sold_out: 1,
        pending: 0,
        other: 0,
    };
    assert_eq!(report.purchases, expected);
    assert_eq!(
        (report.charged, report.double_charged, report.undersold),
        (2, 0, 0)
    );
}

/// Breaks one thing at a time; the audit must find it under the right name, and count it.
#[test]
fn each_promise_broken_once_is_found() {
    type Break = fn(&mut Books);
    let cases: [(&str, &str, Break); 18] = [
        (
            "I1",
            "the counter was written back by someone who had read an old value",
            |b| {
                all_mut(b).0.event.available = 1;
            },
        ),
        ("I1", "a number below 0", |b| {
            let event = &mut all_mut(b).0.event;
            (event.available, event.held) = (-1, 1);
        }),
        ("I2", "a third ticket for two seats", |b| {
            all_mut(b).0.event.sold = 3
        }),
        ("I2", "a ticket that belongs to no purchase", |b| {
            let purchases = &mut all_mut(b).1.purchases;
            purchases.retain(|p| p.id.as_str() != "p-1");
        }),
        ("I3", "a completed purchase was never charged", |b| {
            all_mut(b).3.totals.retain(|t| t.captures == 0)
        }),
        ("I3", "a completed purchase was charged twice", |b| {
            let totals = &mut all_mut(b).3.totals[1];
            (totals.captures, totals.captured_minor) = (2, 2 * PRICE);
        }),
        ("I3", "a declined purchase was charged", |b| {
            let totals = &mut all_mut(b).3.totals[0];
            (totals.captures, totals.captured_minor) = (1, PRICE);
        }),
        ("I3", "charged the wrong amount", |b| {
            all_mut(b).3.totals[1].captured_minor = 1
        }),
        ("I4", "one key, two purchases", |b| {
            let purchases = &mut all_mut(b).1.purchases;
            purchases[2].buyer = purchases[1].buyer.clone();
            purchases[2].idempotency_key = purchases[1].idempotency_key.clone();
        }),
        ("I5", "the processor gave back more than it took", |b| {
            all_mut(b).3.totals[1].refunded_minor = PRICE + 1;
        }),
        ("I5", "billing gave back more than it took", |b| {
            all_mut(b).2.payments[1].refunded_minor = PRICE + 1;
        }),
        ("I6", "a purchase is pending since an hour", |b| {
            let purchase = &mut all_mut(b).1.purchases[1];
            purchase.status = PurchaseStatus::Pending;
            purchase.created_at = now() - TimeDelta::hours(1);
            all_mut(b).0.holds[1].expires_at = now() - TimeDelta::hours(1);
        }),
        ("I6", "an expired hold is still counted", |b| {
            let hold = &mut all_mut(b).0.holds[0];
            hold.status = HoldStatus::Placed;
            hold.expires_at = now() - TimeDelta::minutes(5);
        }),
        ("I6", "a payment stays authorized for ever", |b| {
            let (_, checkout, billing, _) = all_mut(b);
            billing.payments[0].status = PaymentStatus::Authorized;
            checkout.purchases[0].updated_at = now() - TimeDelta::minutes(5);
        }),
        ("I7", "a released hold has a ticket", |b| {
            all_mut(b).0.holds[0].tickets = 1
        }),
        ("I7", "a completed purchase lost its hold to time", |b| {
            let hold = &mut all_mut(b).0.holds[1];
            (hold.status, hold.tickets) = (HoldStatus::Expired, 0);
        }),
        ("I8", "an old token was accepted after a newer one", |b| {
            all_mut(b).0.accepted_tokens = vec![1, 3, 2]
        }),
        ("I10", "a buyer was refused, and the seat is still there", |b| {
            all_mut(b).0.event.capacity = 4;
            all_mut(b).0.event.available = 2;
            all_mut(b).0.holds.remove(0);
            let another = all_mut(b).1.purchases[3].clone();
            all_mut(b).1.purchases.push(another);
        }),
    ];
    for (name, what, break_it) in cases {
        let mut books = small();
        break_it(&mut books);
        let report = report(&books);
        assert_eq!(
            report.invariants[name].verdict,
            Verdict::Fail,
            "{name}, {what}: {:?}",
            report.invariants[name]
        );
        assert_eq!(report.verdict, Verdict::Fail, "{name}, {what}");
    }
}

#[test]
fn the_damage_is_counted() {
    let mut books = small();
    all_mut(&mut books).3.totals[1].captures = 3;
    assert_eq!(report(&books).double_charged, 2);

    let mut books = small();
    all_mut(&mut books).3.totals[0].captured_minor = PRICE;
    assert_eq!(report(&books).charged_without_ticket, 1);

    let mut books = small();
    all_mut(&mut books).3.totals.clear();
    assert_eq!(report(&books).ticket_without_charge, 2);

    let mut books = small();
    all_mut(&mut books).0.event.sold = 7;
    assert_eq!(report(&books).oversold, 5);
}

#[test]
fn one_key_with_two_purchases_counts_each_charge_beyond_the_first() {
    let mut books = small();
    let purchases = &mut all_mut(&mut books).1.purchases;
    purchases[2].buyer = purchases[1].buyer.clone();
    purchases[2].idempotency_key = purchases[1].idempotency_key.clone();
    assert_eq!(report(&books).double_charged, 1);
}

#[test]
fn a_cancelled_purchase_keeps_its_tickets_and_gets_its_money_back() {
    let report = report(&honest(3, &[(2, End::Cancelled), (1, End::Completed)]));
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.invariants);
    assert_eq!(
        (report.sold, report.purchases.other, report.ticket_without_charge),
        (3, 1, 0)
    );
}

#[test]
fn a_seat_that_was_on_hold_may_be_refused_and_stay_unsold() {
    // One seat: the first buyer holds it, the second is refused, then the first is declined.
    let mut books = honest(1, &[(1, End::Declined)]);
    add_refused(&mut books);
    let report = report(&books);
    assert_eq!(
        report.invariants["I10"].verdict,
        Verdict::Pass,
        "{:?}",
        report.invariants["I10"]
    );
    assert_eq!(report.undersold, 0);
}

#[test]
fn a_buyer_of_two_is_rightly_refused_the_last_seat() {
    let report = report(&honest(3, &[(2, End::Completed), (2, End::Completed)]));
    assert_eq!(
        report.invariants["I10"].verdict,
        Verdict::Pass,
        "{:?}",
        report.invariants["I10"]
    );
}

fn add_refused(books: &mut Books) {
    all_mut(books).0.event.available = 0;
    add(books, 1, End::SoldOut);
    all_mut(books).0.event.available = 1;
}

#[test]
fn a_book_that_cannot_be_read_makes_its_promises_unknown() {
    type Lose = fn(&mut Books);
    let cases: [(&str, Lose, &[&str]); 4] = [
        (
            "inventory",
            |b| b.inventory = None,
            &["I1", "I2", "I6", "I7", "I8", "I10"],
        ),
        (
            "checkout",
            |b| b.checkout = None,
            &["I2", "I3", "I4", "I6", "I7", "I10"],
        ),
        ("billing", |b| b.billing = None, &["I5", "I6"]),
        ("gateway", |b| b.gateway = None, &["I3", "I4", "I5"]),
    ];
    for (book, lose, unknown) in cases {
        let mut books = small();
        lose(&mut books);
        let report = report(&books);
        for (name, invariant) in &report.invariants {
            let expected = if unknown.contains(&name.as_str()) {
                Verdict::Unknown
            } else {
                Verdict::Pass
            };
            assert_eq!(
                invariant.verdict, expected,
                "{name} without {book}: {}",
                invariant.detail
            );
        }
        assert_eq!(report.verdict, Verdict::Unknown);
    }
}

#[test]
fn what_one_book_alone_proves_is_no_longer_unknown() {
    let mut books = small();
    books.checkout = None;
    books.inventory.as_mut().expect("a book").event.sold = 3;
    assert_eq!(verdict(&books, "I2"), Verdict::Fail);
}

#[test]
fn a_purchase_that_is_still_at_it_is_neither_right_nor_wrong() {
    let mut books = small();
    all_mut(&mut books).1.purchases[1].status = PurchaseStatus::Pending;
    for name in ["I2", "I3", "I6"] {
        assert_eq!(verdict(&books, name), Verdict::Unknown, "{name}");
    }
    assert_eq!(verdict(&books, "I1"), Verdict::Pass);
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Completed),
        1 => Just(End::Declined),
        1 => Just(End::Cancelled),
        1 => Just(End::Expired),
    ]
}

proptest! {
    #[test]
    fn no_honest_sale_is_accused(
        capacity in 1_i64..50,
        purchases in prop::collection::vec((1_i64..=3, end()), 0..80),
    ) {
        let report = report(&honest(capacity, &purchases));
        prop_assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.invariants);
        prop_assert_eq!(report.double_charged + report.charged_without_ticket + report.ticket_without_charge, 0);
    }

    #[test]
    fn no_charge_too_many_goes_unseen(
        purchases in prop::collection::vec((1_i64..=3, end()), 1..40),
        victim: prop::sample::Index,
    ) {
        let mut books = honest(1000, &purchases);
        let totals = &mut all_mut(&mut books).3.totals;
        let victim = victim.index(totals.len());
        totals[victim].captures += 1;
        totals[victim].captured_minor += PRICE;
        prop_assert_eq!(verdict(&books, "I3"), Verdict::Fail);
    }

    #[test]
    fn no_ticket_too_many_goes_unseen(
        purchases in prop::collection::vec((1_i64..=3, end()), 1..40),
        victim: prop::sample::Index,
    ) {
        let mut books = honest(1000, &purchases);
        let inventory = all_mut(&mut books).0;
        let victim = victim.index(inventory.holds.len());
        inventory.holds[victim].tickets += 1;
        inventory.event.sold += 1;
        for name in ["I1", "I2", "I7"] {
            prop_assert_eq!(verdict(&books, name), Verdict::Fail, "{}", name);
        }
    }
}
