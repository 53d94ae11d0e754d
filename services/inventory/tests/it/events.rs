//! Creating and listing events.

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use testkit::TestDb;

use crate::shop::Shop;

testkit::for_each_engine! {
    async fn an_event_is_created_once_and_the_same_request_finds_it(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        let body = json!({
            "id": "gala", "name": "Gala", "capacity": 3, "max_per_buyer": 2,
            "price": { "amount_minor": 1500, "currency": "JPY" },
        });
        let created = shop.send(0, Method::POST, "/v1/events", &[], Some(&body)).await;
        let event = created.is(201);
        assert_eq!(event["available"], 3);
        assert_eq!((&event["held"], &event["sold"], &event["oversold"]), (&json!(0), &json!(0), &json!(0)));
        assert_eq!(event["availability"], "available");
        assert_eq!(event["max_per_buyer"], 2);

        let again = shop.send(1, Method::POST, "/v1/events", &[], Some(&body)).await;
        assert_eq!(again.is(200), event);

        for (member, other) in [
            ("name", json!("Ball")),
            ("capacity", json!(4)),
            ("max_per_buyer", json!(null)),
            ("price", json!({ "amount_minor": 1500, "currency": "EUR" })),
        ] {
            let mut body = body.clone();
            body[member] = other;
            shop.send(0, Method::POST, "/v1/events", &[], Some(&body)).await.is_problem(409, "event-exists");
        }
        let shown = shop.send(1, Method::GET, "/v1/events/gala", &[], None).await;
        assert_eq!(shown.is(200), event);
        shop.send(0, Method::GET, "/v1/events/ball", &[], None).await.is_problem(404, "event-not-found");
        shop.send(0, Method::GET, "/v1/audit-records/ball", &[], None).await.is_problem(404, "event-not-found");
        shop.close().await;
    }

    async fn of_many_who_create_one_event_at_once_one_has_created_it(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        let body = |n: usize| json!({
            "id": "rush", "name": "Rush", "capacity": 1 + n % 2,
            "price": { "amount_minor": 1, "currency": "EUR" },
        });
        let replies = join_all((0..20).map(|n| {
            let (shop, body) = (&shop, body(n));
            async move { shop.send(n / 2, Method::POST, "/v1/events", &[], Some(&body)).await }
        })).await;
        let count = |status| replies.iter().filter(|reply| reply.status == status).count();
        assert_eq!((count(201), count(200), count(409)), (1, 9, 10));
        shop.close().await;
    }

    async fn the_newest_events_come_first_and_no_more_than_asked_for(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        for id in ["first", "second", "third"] {
            shop.event(id, 1).await;
        }
        let made = shop.event_with(json!({ "capacity": 1 })).await;
        let made = made["id"].as_str().expect("an id of the service's making");

        let ids = |body: &serde_json::Value| -> Vec<String> {
            let events = body["events"].as_array().expect("a list");
            events.iter().map(|event| event["id"].as_str().expect("an id").to_owned()).collect()
        };
        let all = shop.send(0, Method::GET, "/v1/events", &[], None).await;
        let all = ids(all.is(200));
        assert_eq!(all.len(), 4);
        assert!(all.iter().any(|id| id == made));
        let two = shop.send(0, Method::GET, "/v1/events?limit=2", &[], None).await;
        assert_eq!(ids(two.is(200)), all[..2]);
        for limit in ["0", "501", "-1", "x"] {
            let path = format!("/v1/events?limit={limit}");
            let reply = shop.send(0, Method::GET, &path, &[], None).await;
            reply.is_problem(400, "invalid-request");
            assert_eq!(reply.body["errors"][0]["pointer"], "/limit");
        }
        shop.close().await;
    }
}
