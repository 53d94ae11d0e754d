//! Placing holds.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use testkit::TestDb;
use ticketing_types::Strategy;

use crate::shop::{Shop, cart, cart_for, outcomes};

/// Strategies that need nothing but this service.
const LOCAL: [Strategy; 4] = [
    Strategy::None,
    Strategy::Process,
    Strategy::Atomic,
    Strategy::Optimistic,
];

testkit::for_each_engine! {
    async fn a_cart_is_held_whole_or_not_at_all(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        for strategy in LOCAL {
            let (a, b) = (format!("a-{strategy}"), format!("b-{strategy}"));
            shop.event(&a, 5).await;
            shop.event(&b, 1).await;
            let hold = |name: &str| format!("{name}-{strategy}");

            let short = shop.place(0, &hold("h1"), &cart("ann", &[(&a, 1), (&b, 2)]), strategy).await;
            short.is_problem(409, "sold-out");
            let expected = json!([{ "event_id": b, "requested": 2, "available": 1, "may_return": false }]);
            assert_eq!(short.body["lines"], expected, "{strategy}");
            assert_eq!(shop.stock(&a).await.available, 5, "{strategy}: nothing of the cart is held");

            let placed = shop.place(0, &hold("h2"), &cart("ann", &[(&a, 2), (&b, 1), (&a, 1)]), strategy).await;
            let body = placed.is(201);
            assert_eq!(body["amount"], json!({ "amount_minor": 10_000, "currency": "EUR" }));
            assert_eq!(body["items"].as_array().map(Vec::len), Some(3), "the lines as they were sent");
            assert!(body["timings"]["section_ms"].as_f64().is_some_and(|ms| ms > 0.0));

            // Two lines of one event are one wish.
            let summed = shop.place(0, &hold("h3"), &cart("bob", &[(&a, 1), (&a, 2)]), strategy).await;
            summed.is_problem(409, "sold-out");
            let expected = json!([{ "event_id": a, "requested": 3, "available": 2, "may_return": true }]);
            assert_eq!(summed.body["lines"], expected, "{strategy}");

            for event in [&a, &b] {
                shop.stock(event).await.adds_up();
            }
            let shown = shop.send(0, Method::GET, &format!("/v1/events/{b}"), &[], None).await;
            assert_eq!(shown.body["availability"], "reserved", "a hold may still give it back");
        }
        shop.close().await;
    }

    async fn the_same_hold_again_is_the_same_answer(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        for strategy in LOCAL {
            let event = format!("e-{strategy}");
            let id = format!("h-{strategy}");
            shop.event(&event, 2).await;
            let wish = cart("ann", &[(&event, 2)]);
            let first = shop.place(0, &id, &wish, strategy).await;
            let first = first.is(201);

            let mut again = shop.place(1, &id, &wish, strategy).await.is(200).clone();
            again["timings"] = first["timings"].clone();
            assert_eq!(&again, first, "{strategy}");

            for other in [cart("bob", &[(&event, 2)]), cart("ann", &[(&event, 1)]), cart_for(500, "ann", &[(&event, 2)])] {
                shop.place(0, &id, &other, strategy).await.is_problem(409, "hold-mismatch");
            }
            shop.confirm(0, &id).await.is(200);
            shop.place(0, &id, &wish, strategy).await.is(200);
            let stock = shop.stock(&event).await;
            assert_eq!((stock.available, stock.held, stock.sold), (0, 0, 2), "{strategy}: held and sold once");
        }
        shop.close().await;
    }

    async fn twins_that_race_for_the_last_tickets_are_one_hold(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        for strategy in LOCAL {
            let event = format!("e-{strategy}");
            let id = format!("h-{strategy}");
            shop.event(&event, 1).await;
            let wish = cart("ann", &[(&event, 1)]);
            let replies = join_all((0..20).map(|at| shop.place(at, &id, &wish, strategy))).await;
            let counts = outcomes(&replies);
            assert_eq!(counts.get("201"), Some(&1), "{strategy}: {counts:?}");
            assert_eq!(counts.get("200"), Some(&19), "{strategy}: {counts:?}");
            let stock = shop.stock(&event).await;
            assert_eq!((stock.available, stock.held), (0, 1), "{strategy}");
        }
        shop.close().await;
    }

    async fn a_buyer_gets_no_more_than_the_limit(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        for strategy in [Strategy::Atomic, Strategy::Optimistic] {
            let event = format!("e-{strategy}");
            shop.event_with(json!({ "id": event, "capacity": 100, "max_per_buyer": 2 })).await;
            let ids: Vec<_> = (0..30).map(|n| format!("h-{strategy}-{n}")).collect();
            let wish = cart("ann", &[(&event, 1)]);
            let replies = join_all(ids.iter().enumerate().map(|(at, id)| shop.place(at, id, &wish, strategy))).await;
            let counts = outcomes(&replies);
            assert_eq!(counts.get("201"), Some(&2), "{strategy}: {counts:?}");
            assert_eq!(counts.get("422 limit-reached"), Some(&28), "{strategy}: {counts:?}");

            let refused = replies.iter().find(|reply| reply.status == 422).expect("a refusal");
            let numbers = ["limit", "held_or_owned", "requested"].map(|name| refused.body[name].as_i64());
            assert_eq!(numbers, [Some(2), Some(2), Some(1)]);

            // Tickets count like holds; another buyer has a limit of its own.
            let (held, _) = ids.iter().zip(&replies).find(|(_, reply)| reply.status == 201).expect("a hold");
            shop.confirm(0, held).await.is(200);
            shop.place(0, &format!("more-{strategy}"), &wish, strategy).await.is_problem(422, "limit-reached");
            shop.place(0, &format!("bob-{strategy}"), &cart("bob", &[(&event, 2)]), strategy).await.is(201);
        }
        // One instance and one mutex: the limit stands inside the same section as the stock.
        shop.event_with(json!({ "id": "e-process", "capacity": 100, "max_per_buyer": 2 })).await;
        let wish = cart("ann", &[("e-process", 1)]);
        let ids: Vec<_> = (0..30).map(|n| format!("h-process-{n}")).collect();
        let replies = join_all(ids.iter().map(|id| shop.place(0, id, &wish, Strategy::Process))).await;
        assert_eq!(outcomes(&replies).get("201"), Some(&2));
        shop.close().await;
    }

    async fn whoever_is_inside_goes_on_to_the_end_though_its_client_hangs_up(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        shop.event("e", 1).await;
        let wish = cart("ann", &[("e", 1)]);
        let hung_up = shop.client
            .put(format!("{}/v1/holds/h1", shop.urls[0]))
            .header("lock-strategy", "process")
            .header("fault", "inventory.critical-section=delay=1s")
            .json(&wish)
            .timeout(Duration::from_millis(300))
            .send()
            .await;
        assert!(hung_up.is_err());
        // Its lock is not free until its write is done.
        let next = shop.place(0, "h2", &cart("bob", &[("e", 1)]), Strategy::Process).await;
        next.is_problem(409, "sold-out");
        shop.place(0, "h1", &wish, Strategy::Process).await.is(200);
        let stock = shop.stock("e").await;
        assert_eq!((stock.available, stock.held), (0, 1));
        shop.close().await;
    }

    async fn a_fault_in_the_section_leaves_nothing_and_one_after_it_loses_only_the_answer(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        shop.event("e", 5).await;
        let wish = cart("ann", &[("e", 1)]);
        let inside = [("fault", "inventory.critical-section=error=503")];
        let reply = shop.send(0, Method::PUT, "/v1/holds/h1", &inside, Some(&wish)).await;
        reply.is_problem(503, "injected-fault");
        assert_eq!(shop.stock("e").await.available, 5);

        let after = [("fault", "inventory.after-hold=error=500")];
        shop.send(0, Method::PUT, "/v1/holds/h1", &after, Some(&wish)).await.is_problem(500, "injected-fault");
        assert_eq!(shop.stock("e").await.held, 1);
        shop.place(0, "h1", &wish, Strategy::Atomic).await.is(200);

        let lost = shop.client
            .post(format!("{}/v1/holds/h1/confirm", shop.urls[0]))
            .header("fault", "inventory.after-confirm=drop-reply")
            .send()
            .await;
        assert!(lost.is_err(), "the answer was lost");
        assert_eq!(shop.stock("e").await.sold, 1);
        assert_eq!(shop.confirm(0, "h1").await.is(200)["tickets"].as_array().map(Vec::len), Some(1));
        shop.close().await;
    }
}
