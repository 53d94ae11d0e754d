//! How holds end: each exactly once.

use std::time::Duration;

use futures::future::{join, join_all};
use reqwest::Method;
use testkit::{TestDb, break_commits, eventually, mend_commits};
use ticketing_types::Strategy;

use crate::shop::{Shop, Stock, cart, cart_for, outcomes};

const SOON: Duration = Duration::from_secs(20);

/// The event as soon as nothing of it is held any more.
async fn at_rest(shop: &Shop, event: &str) -> Stock {
    eventually(SOON, "no hold is left", async || {
        let stock = shop.stock(event).await;
        (stock.held == 0).then_some(stock)
    })
    .await
}

testkit::for_each_engine! {
    async fn a_confirmed_hold_is_tickets_for_ever(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        shop.event("a", 5).await;
        shop.event("b", 5).await;
        shop.place(0, "h", &cart_for(400, "ann", &[("a", 2), ("b", 1), ("a", 1)]), Strategy::Atomic).await.is(201);
        let confirmed = shop.confirm(0, "h").await;
        let tickets = confirmed.is(200)["tickets"].as_array().expect("tickets").clone();
        let of = |event: &str| tickets.iter().filter(|ticket| ticket["event_id"] == event).count();
        assert_eq!((of("a"), of("b")), (3, 1));
        let mut ids: Vec<_> = tickets.iter().map(|ticket| ticket["id"].as_str().expect("an id")).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);

        assert_eq!(shop.confirm(1, "h").await.is(200)["tickets"].as_array(), Some(&tickets), "the same again");
        shop.release(0, "h").await.is_problem(409, "hold-confirmed");
        let stock = shop.stock("a").await;
        assert_eq!((stock.available, stock.held, stock.sold), (2, 0, 3));

        // Its time passes and changes nothing: a later hold expires, this one does not.
        shop.place(0, "later", &cart_for(400, "ann", &[("a", 1)]), Strategy::Atomic).await.is(201);
        let stock = at_rest(&shop, "a").await;
        assert_eq!((stock.available, stock.sold), (2, 3));
        shop.close().await;
    }

    async fn an_unknown_hold_cannot_be_confirmed_and_releasing_it_closes_the_id(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        shop.event("e", 5).await;
        shop.confirm(0, "h").await.is_problem(404, "hold-not-found");
        shop.release(0, "h").await.is(204);
        shop.release(1, "h").await.is(204);
        shop.confirm(0, "h").await.is_problem(409, "hold-closed");
        // The PUT that was overtaken by its own undo.
        let wish = cart("ann", &[("e", 1)]);
        shop.place(1, "h", &wish, Strategy::Atomic).await.is_problem(409, "hold-closed");
        assert_eq!(shop.stock("e").await.available, 5);
        shop.close().await;
    }

    async fn a_released_hold_gives_its_stock_back_once(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        for strategy in [Strategy::None, Strategy::Process, Strategy::Atomic, Strategy::Optimistic] {
            let event = format!("e-{strategy}");
            let id = format!("h-{strategy}");
            shop.event(&event, 5).await;
            let wish = cart("ann", &[(&event, 2), (&event, 1)]);
            shop.place(0, &id, &wish, strategy).await.is(201);
            let replies = join_all((0..10).map(|at| shop.release(at, &id))).await;
            assert_eq!(outcomes(&replies).get("204"), Some(&10), "{strategy}");
            let stock = at_rest(&shop, &event).await;
            assert_eq!((stock.available, stock.sold), (5, 0), "{strategy}");
            shop.confirm(0, &id).await.is_problem(409, "hold-closed");
            shop.place(0, &id, &wish, strategy).await.is_problem(409, "hold-closed");
        }
        shop.close().await;
    }

    async fn time_gives_a_hold_back_once_though_two_instances_look(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        for strategy in [Strategy::None, Strategy::Process, Strategy::Atomic, Strategy::Optimistic] {
            let (a, b) = (format!("a-{strategy}"), format!("b-{strategy}"));
            shop.event(&a, 70).await;
            shop.event(&b, 70).await;
            for number in 0..60 {
                let wish = cart_for(50, "ann", &[(&a, 1), (&b, 1)]);
                shop.place(0, &format!("h-{strategy}-{number}"), &wish, strategy).await.is(201);
            }
            for event in [&a, &b] {
                let stock = at_rest(&shop, event).await;
                // Under `none` and `process` a give-back of one instance may meet a buyer at the other.
                if strategy.promises() {
                    assert_eq!((stock.available, stock.sold), (70, 0), "{strategy}");
                }
            }
            let id = format!("h-{strategy}-0");
            shop.confirm(0, &id).await.is_problem(409, "hold-expired");
            let wish = cart_for(50, "ann", &[(&a, 1), (&b, 1)]);
            shop.place(0, &id, &wish, strategy).await.is_problem(409, "hold-expired");
            shop.release(0, &id).await.is(204);
        }
        shop.close().await;
    }

    async fn confirm_and_expiry_race_and_every_ticket_goes_to_one_of_them(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        shop.event("e", 40).await;
        let mut confirmed = 0;
        let ids: Vec<_> = (0..40).map(|number| format!("h{number}")).collect();
        let wish = cart_for(300, "ann", &[("e", 1)]);
        let replies = join_all(ids.iter().enumerate().map(|(at, id)| {
            let (shop, wish) = (&shop, &wish);
            async move {
                shop.place(at, id, wish, Strategy::Atomic).await.is(201);
                // Some early, some late, most around the end of the hold's time.
                tokio::time::sleep(Duration::from_millis(200 + 5 * at as u64)).await;
                shop.confirm(at + 1, id).await
            }
        }))
        .await;
        for (id, reply) in ids.iter().zip(&replies) {
            match reply.status {
                200 => {
                    confirmed += 1;
                    shop.confirm(0, id).await.is(200);
                }
                _ => reply.is_problem(409, "hold-expired"),
            }
        }
        let stock = at_rest(&shop, "e").await;
        stock.adds_up();
        assert_eq!((stock.sold, stock.available), (confirmed, 40 - confirmed));
        shop.close().await;
    }

    async fn confirm_and_release_race_and_one_of_them_has_it(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        shop.event("e", 40).await;
        let mut sold = 0;
        for number in 0..40 {
            let id = format!("h{number}");
            shop.place(0, &id, &cart("ann", &[("e", 1)]), Strategy::Atomic).await.is(201);
            let (confirm, release) = join(shop.confirm(number, &id), shop.release(number + 1, &id)).await;
            match confirm.status {
                200 => {
                    sold += 1;
                    release.is_problem(409, "hold-confirmed");
                }
                _ => {
                    confirm.is_problem(409, "hold-closed");
                    release.is(204);
                }
            }
        }
        let stock = at_rest(&shop, "e").await;
        stock.adds_up();
        assert_eq!(stock.sold, sold);
        shop.close().await;
    }

    async fn stock_that_cannot_be_given_back_at_once_is_owed_and_paid_later(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        shop.event("e", 5).await;
        shop.place(0, "h1", &cart("ann", &[("e", 2)]), Strategy::Process).await.is(201);

        // Somebody stays in the section of this event, having read `available = 3`.
        let slow = [("lock-strategy", "process"), ("fault", "inventory.critical-section=delay=3s")];
        let wish = cart("bob", &[("e", 1)]);
        let inside = shop.send(0, Method::PUT, "/v1/holds/h2", &slow, Some(&wish));
        let meanwhile = async {
            eventually(SOON, "bob is inside", async || (shop.fired(0).await == 1).then_some(())).await;
            shop.release(0, "h1").await.is(204);
            let stock = shop.stock("e").await;
            assert_eq!((stock.available, stock.held), (3, 2), "owed: it still counts as held");
            let records = shop.records("e").await;
            assert_eq!(records["holds"][0]["status"], "releasing");
            shop.confirm(0, "h1").await.is_problem(409, "hold-closed");
        };
        let (placed, ()) = join(inside, meanwhile).await;
        placed.is(201);

        let stock = eventually(SOON, "the debt is paid", async || {
            let stock = shop.stock("e").await;
            (stock.held == 1).then_some(stock)
        })
        .await;
        assert_eq!((stock.available, stock.held), (4, 1), "bob's write did not undo the give-back");
        assert_eq!(shop.records("e").await["holds"][0]["status"], "released");
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_an_answer_is_an_unknown_outcome_and_the_same_request_again_tells() {
    let Some(db) = testkit::postgres().await else {
        return;
    };
    let shop = Shop::open(&db, 1).await;
    shop.event("e", 5).await;
    let wish = cart("ann", &[("e", 1)]);

    break_commits(db.url(), "hold").await;
    let placed = shop.place(0, "h", &wish, Strategy::Atomic).await;
    placed.is_problem(503, "outcome-unknown");
    assert!(placed.retry_after);
    shop.release(0, "other").await.is_problem(503, "outcome-unknown");
    mend_commits(db.url(), "hold").await;
    shop.place(0, "h", &wish, Strategy::Atomic).await.is(201);
    shop.release(0, "other").await.is(204);

    break_commits(db.url(), "hold").await;
    shop.confirm(0, "h").await.is_problem(503, "outcome-unknown");
    mend_commits(db.url(), "hold").await;
    shop.confirm(0, "h").await.is(200);
    shop.stock("e").await.adds_up();
    shop.close().await;
}
