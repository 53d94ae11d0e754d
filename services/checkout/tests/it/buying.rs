//! One purchase from the request to the answer, in fair weather and in foul.

use std::time::Duration;

use serde_json::json;
use testkit::{TestDb, for_each_engine};

use crate::shop::{Answer, Shop, order};
use crate::world::{Call, HoldState, PRICE_MINOR, PaymentState, Trouble};

for_each_engine! {
    async fn a_purchase_ends_with_tickets_and_one_charge(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        let bought = shop.buy("k-1", &order("ann", 2)).await;
        assert_eq!(bought.status, 201, "{}", bought.text);
        let (id, body) = (bought.id(), bought.json());
        assert_eq!(bought.header("location"), Some(format!("/v1/purchases/{id}").as_str()));
        assert_eq!(body["status"], "completed");
        assert_eq!(body["tickets"].as_array().unwrap().len(), 2);
        assert_eq!(body["amount"], json!({ "amount_minor": 2 * PRICE_MINOR, "currency": "EUR" }));
        // Two from the hold, one each from authorizing and capturing, and whatever our own section took.
        assert!(body["timings"]["lock_wait_ms"].as_f64().unwrap() >= 4.0, "{body}");
        assert!(body["timings"]["payment_ms"].as_f64().unwrap() > 0.0);
        assert!(body["timings"]["total_ms"].as_f64().unwrap() > 0.0);

        assert_eq!(shop.get(&format!("/v1/purchases/{id}")).await.json(), body);
        assert_eq!((shop.world.sold(), shop.world.captures()), (2, 1));
        let list = shop.get("/v1/purchases?buyer=ann&limit=5").await.json();
        assert_eq!(list["purchases"], json!([body]));
        shop.world.assert_at_rest();
        shop.close().await;
    }

    async fn a_declined_card_gives_the_seats_back(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        let mut wish = order("ann", 2);
        wish["card"] = "card_declined".into();
        let declined = shop.buy("k-1", &wish).await;
        assert_eq!((declined.status, declined.slug().as_str()), (402, "payment-declined"));
        assert_eq!(declined.header("content-type"), Some("application/problem+json"));
        assert_eq!(shop.world.hold(&declined.id()), Some(HoldState::Released));
        assert_eq!(shop.status(&declined.id()).await, "rejected");
        shop.world.assert_at_rest();
    }

    async fn sold_out_says_which_lines_were_short(db: TestDb) {
        let shop = Shop::open(db, 1).await;
        let refused = shop.buy("k-1", &order("ann", 2)).await;
        assert_eq!((refused.status, refused.slug().as_str()), (409, "sold-out"));
        let lines = refused.json()["lines"].clone();
        assert_eq!((&lines[0]["requested"], &lines[0]["available"]), (&json!(2), &json!(1)));
        assert_eq!(shop.world.calls(Call::Authorize), 0);
    }

    async fn lost_replies_are_asked_for_again_and_nothing_is_done_twice(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        for call in [Call::PlaceHold, Call::Authorize, Call::ConfirmHold, Call::Capture] {
            shop.world.next(call, Trouble::LostReply).next(call, Trouble::Busy);
        }
        let bought = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!(bought.status, 201, "{}", bought.text);
        assert_eq!(shop.world.calls(Call::Capture), 3);
        assert_eq!((shop.world.sold(), shop.world.captures()), (1, 1));
        shop.world.assert_at_rest();
    }

    async fn a_busy_inventory_is_503_and_the_same_key_may_start_again(db: TestDb) {
        let shop = Shop::open_with(db, 10, 2, |_| {}).await;
        shop.world.next(Call::PlaceHold, Trouble::Busy);
        let busy = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((busy.status, busy.slug().as_str()), (503, "busy"));
        assert!(busy.header("retry-after").is_some());

        let mut other = order("ann", 1);
        other["items"][0]["quantity"] = 3.into();
        assert_eq!(shop.buy("k-1", &other).await.slug(), "idempotency-key-reused");

        let bought = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((bought.status, bought.replayed()), (201, false));
        assert!(shop.buy("k-1", &order("ann", 1)).await.replayed());
        let records = shop.get("/v1/audit-records/gala").await.json();
        assert_eq!(records["purchases"].as_array().unwrap().len(), 1);
        assert_eq!(records["purchases"][0]["status"], "completed");
    }

    async fn a_lock_lost_in_inventory_is_taken_again(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        shop.world.next(Call::PlaceHold, Trouble::Stale).next(Call::PlaceHold, Trouble::Stale);
        assert_eq!(shop.buy("k-1", &order("ann", 1)).await.status, 201);
        for _ in 0..3 {
            shop.world.next(Call::PlaceHold, Trouble::Stale);
        }
        assert_eq!(shop.buy("k-2", &order("ann", 1)).await.status, 503);
    }

    async fn a_hold_that_ran_out_before_the_pivot_voids_the_payment(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        shop.world.next(Call::ConfirmHold, Trouble::HoldExpires);
        let late = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((late.status, late.slug().as_str()), (409, "hold-expired"));
        assert_eq!(shop.world.payment(&late.id()), Some(PaymentState::Voided));
        shop.world.assert_at_rest();
    }

    async fn a_refusal_of_the_pivot_that_is_no_verdict_on_the_hold_voids_nothing(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        for (key, trouble) in [("k-1", Trouble::Misrouted), ("k-2", Trouble::Misread)] {
            // Confirmed, only we were not told. What comes next says nothing about that.
            shop.world.next(Call::ConfirmHold, Trouble::LostReply).next(Call::ConfirmHold, trouble);
            let bought = shop.buy(key, &order("ann", 1)).await;
            assert_eq!(bought.status, 201, "{trouble:?}: {}", bought.text);
        }
        assert_eq!((shop.world.calls(Call::Void), shop.world.sold(), shop.world.captures()), (0, 2, 2));
        shop.world.assert_at_rest();
        shop.close().await;
    }

    async fn a_hold_that_was_closed_before_the_pivot_voids_the_payment(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        shop.world.next(Call::ConfirmHold, Trouble::HoldCloses);
        let refused = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((refused.status, refused.slug().as_str()), (422, "purchase-refused"));
        assert_eq!(shop.world.payment(&refused.id()), Some(PaymentState::Voided));
        shop.world.assert_at_rest();
    }

    async fn what_is_not_known_in_time_is_202_and_goes_on_by_itself(db: TestDb) {
        let shop = Shop::open_with(db, 10, 2, |config| {
            config.lock_wait = Duration::ZERO;
            config.budget = Duration::from_millis(300);
        })
        .await;
        shop.world.next(Call::Authorize, Trouble::Stuck);
        let pending = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((pending.status, pending.json()["status"].as_str()), (202, Some("pending")));
        let (id, location) = (pending.id(), pending.header("location").unwrap().to_owned());
        assert_eq!(location, format!("/v1/purchases/{id}"));
        assert!(pending.header("retry-after").is_some());
        let again = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((again.status, again.slug().as_str()), (409, "purchase-in-progress"));
        assert!(again.header("retry-after").is_some());

        shop.world.go_on();
        shop.wait_for_status(&id, "completed").await;
        let replay = shop.buy("k-1", &order("ann", 1)).await;
        assert_eq!((replay.status, replay.replayed(), replay.id()), (201, true, id));
        assert_eq!(shop.world.captures(), 1);
    }

    async fn a_drive_that_takes_long_is_not_taken_away(db: TestDb) {
        let shop = Shop::open_with(db, 10, 2, |config| {
            config.recovery_stale = Duration::from_millis(300);
            config.recovery_every = Duration::from_millis(20);
        })
        .await;
        let request = shop.buying("k-1", &order("ann", 1)).header("fault", "checkout.after-hold=delay=1500ms");
        let bought = Answer::of(request).await;
        assert_eq!(bought.status, 201, "{}", bought.text);
        assert_eq!((shop.world.calls(Call::PlaceHold), shop.world.calls(Call::Authorize)), (1, 1));
    }

    async fn every_call_carries_the_terms_of_the_request(db: TestDb) {
        let shop = Shop::open(db, 10).await;
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let request = shop.buying("k-1", &order("ann", 1)).header("traceparent", trace);
        let request = request.header("lock-strategy", "optimistic").header("payment-key", "fresh");
        assert_eq!(Answer::of(request).await.status, 201);
        assert_eq!(shop.buy("k-2", &order("ann", 1)).await.status, 201);
        let seen = shop.world.seen();
        let (first, second) = seen.split_at(4);
        for seen in first {
            let terms = (seen.strategy.as_str(), seen.payment_key.as_str(), seen.traceparent.as_str());
            assert_eq!(terms, ("optimistic", "fresh", trace));
        }
        for seen in second {
            assert_eq!((seen.strategy.as_str(), seen.payment_key.as_str()), ("atomic", "stable"));
            assert_eq!(seen.traceparent.len(), trace.len());
        }
    }

    async fn the_audit_is_shown_every_purchase_of_the_event(db: TestDb) {
        let shop = Shop::open(db, 3).await;
        let mut two_lines = order("ann", 1);
        two_lines["items"] = json!([
            { "event_id": "gala", "quantity": 1 }, { "event_id": "other", "quantity": 1 },
            { "event_id": "gala", "quantity": 1 },
        ]);
        assert_eq!(shop.buy("k-1", &two_lines).await.status, 201);
        assert_eq!(shop.buy("k-2", &order("bob", 1)).await.slug(), "sold-out");
        let records = shop.get("/v1/audit-records/gala").await.json();
        let purchases = records["purchases"].as_array().unwrap();
        assert_eq!(purchases.len(), 2);
        assert_eq!((&purchases[0]["quantity"], &purchases[0]["quantity_all"]), (&json!(2), &json!(3)));
        assert_eq!(purchases[0]["amount_minor"], 3 * PRICE_MINOR);
        assert_eq!((&purchases[1]["status"], &purchases[1]["reason"]), (&json!("rejected"), &json!("sold-out")));
        assert_eq!(records["stale_tokens_rejected"], 0);
        let none = shop.get("/v1/audit-records/nothing").await.json();
        assert_eq!(none["purchases"], json!([]));
    }
}
