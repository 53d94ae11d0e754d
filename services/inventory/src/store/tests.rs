//! What only the store can show: fencing, without a lock cluster around it.

use std::time::Duration;

use guard::WriteRule;
use testkit::TestDb;
use ticketing_types::inventory::CreateEvent;
use ticketing_types::{Buyer, Cart, EventId, HoldId, Money, Strategy};

use super::{GiveBack, HoldWrite, NewHold, Release, Store, now};
use crate::domain::stock::Taken;

struct Fixture {
    store: Store,
    event: EventId,
    buyer: Buyer,
    items: Cart,
    price: Money,
}

impl Fixture {
    async fn new(db: &TestDb, capacity: u32) -> Self {
        let store = Store::connect(db.url()).await.expect("a store");
        let request: CreateEvent = serde_json::from_value(serde_json::json!({
            "name": "e", "capacity": capacity, "price": { "amount_minor": 1, "currency": "EUR" },
        }))
        .expect("an event");
        let event = EventId::parse("e").expect("an id");
        assert!(
            store
                .insert_event(&event, &request, now())
                .await
                .expect("an event")
        );
        let items = serde_json::from_value(serde_json::json!([{ "event_id": "e", "quantity": 1 }]));
        Self {
            store,
            event,
            buyer: Buyer::parse("ann").expect("a buyer"),
            items: items.expect("a cart"),
            price: request.price,
        }
    }

    async fn place(&self, id: &str, rule: WriteRule) -> HoldWrite {
        let stock = self
            .store
            .read_stock(&self.event, &self.buyer)
            .await
            .expect("stock");
        self.place_having_read(id, rule, stock).await
    }

    async fn place_having_read(
        &self,
        id: &str,
        rule: WriteRule,
        stock: crate::domain::stock::Stock,
    ) -> HoldWrite {
        let id = HoldId::parse(id).expect("an id");
        let created_at = now();
        let hold = NewHold {
            id: &id,
            buyer: &self.buyer,
            items: &self.items,
            ttl_ms: None,
            amount: self.price,
            strategy: Strategy::Raft,
            created_at,
            expires_at: created_at + Duration::from_secs(60),
        };
        let taken = Taken {
            event_id: &self.event,
            quantity: 1,
            max_per_buyer: None,
            stock,
        };
        self.store
            .write_hold(rule, &hold, &[taken])
            .await
            .expect("a write")
    }
}

testkit::for_each_engine! {
    async fn a_stale_token_is_refused_and_nothing_is_sold(db: TestDb) {
        let fixture = Fixture::new(&db, 5).await;
        assert_eq!(fixture.place("h1", WriteRule::Fenced(7)).await, HoldWrite::Written);
        assert_eq!(fixture.place("h2", WriteRule::Fenced(7)).await, HoldWrite::Written);
        // Token 6 was paused between its read and this write.
        assert_eq!(fixture.place("h3", WriteRule::Fenced(6)).await, HoldWrite::Stale(fixture.event.clone()));
        let h3 = HoldId::parse("h3").expect("an id");
        assert_eq!(fixture.store.find_hold(&h3).await.expect("a look"), None);
        fixture.store.count_refused_token(&fixture.event).await.expect("counted");

        let records = fixture.store.records(&fixture.event).await.expect("a look").expect("records");
        assert_eq!((records.event.available, records.event.held), (3, 2));
        assert_eq!(records.accepted_tokens, [7, 7]);
        assert_eq!(records.stale_tokens_rejected, 1);
        fixture.store.close().await;
    }

    async fn giving_back_is_fenced_like_taking(db: TestDb) {
        let fixture = Fixture::new(&db, 5).await;
        let id = HoldId::parse("h1").expect("an id");
        assert_eq!(fixture.place("h1", WriteRule::Fenced(3)).await, HoldWrite::Written);
        let released = fixture.store.release(&id, Strategy::Raft, now()).await.expect("a release");
        assert!(matches!(released, Release::Owed(_)), "{released:?}");

        let holds = [id];
        let store = &fixture.store;
        let stale = store.give_back(WriteRule::Fenced(2), &holds, now()).await.expect("an answer");
        assert_eq!(stale, GiveBack::Stale(fixture.event.clone()));
        assert_eq!(store.give_back(WriteRule::Fenced(4), &holds, now()).await.expect("an answer"), GiveBack::Done(1));
        assert_eq!(store.give_back(WriteRule::Fenced(5), &holds, now()).await.expect("an answer"), GiveBack::Done(0));

        let records = store.records(&fixture.event).await.expect("a look").expect("records");
        assert_eq!((records.event.available, records.event.held), (5, 0), "given back once");
        assert_eq!(records.accepted_tokens, [3, 4]);
        fixture.store.close().await;
    }

    async fn a_lost_update_is_possible_under_the_plain_rule_and_refused_by_the_others(db: TestDb) {
        let fixture = Fixture::new(&db, 5).await;
        let read = fixture.store.read_stock(&fixture.event, &fixture.buyer).await.expect("stock");
        assert_eq!(fixture.place_having_read("h1", WriteRule::Plain, read).await, HoldWrite::Written);
        assert_eq!(fixture.place_having_read("h2", WriteRule::CompareVersion, read).await, HoldWrite::Lost);
        // The second writer wrote what the first had already taken: two are held, one is gone.
        assert_eq!(fixture.place_having_read("h3", WriteRule::Plain, read).await, HoldWrite::Written);
        let event = fixture.store.event(&fixture.event).await.expect("a look").expect("an event");
        assert_eq!((event.available, event.held), (4, 2));
        // Computed from the row and not from what was read.
        assert_eq!(fixture.place_having_read("h4", WriteRule::Conditional, read).await, HoldWrite::Written);
        let event = fixture.store.event(&fixture.event).await.expect("a look").expect("an event");
        assert_eq!((event.available, event.held), (3, 3));
        fixture.store.close().await;
    }
}
