//! What only the store can show: fencing, without a lock cluster around it.

use std::time::Duration;

use guard::WriteRule;
use service_db::{with_reader, with_tx};
use testkit::TestDb;
use ticketing_types::inventory::CreateEvent;
use ticketing_types::{Buyer, Cart, EventId, HoldId, Money, Strategy};

use super::{Announced, GiveBack, HoldWrite, NewHold, Release, Store, now};
use crate::domain::stock::{Stock, Taken};

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

    /// The section's deciding read under this token; the event, if its row has seen a newer one.
    async fn try_read_announced(&self, token: i64) -> Result<Stock, EventId> {
        let stock = Stock {
            available: i64::MIN,
            version: i64::MIN,
            held_or_owned: i64::MIN,
        };
        let mut cart = [self.taken(stock)];
        let announced = self
            .store
            .read_announced(token, &self.buyer, &mut cart)
            .await
            .expect("a read");
        match announced {
            Announced::Read => Ok(cart[0].stock),
            Announced::Stale(event_id) => Err(event_id),
        }
    }

    async fn read_announced(&self, token: i64) -> Stock {
        self.try_read_announced(token).await.expect("no newer token")
    }

    async fn place(&self, id: &str, rule: WriteRule) -> HoldWrite {
        let stock = self
            .store
            .read_stock(&self.event, &self.buyer)
            .await
            .expect("stock");
        self.place_having_read(id, rule, stock).await
    }

    async fn place_having_read(&self, id: &str, rule: WriteRule, stock: Stock) -> HoldWrite {
        let id = HoldId::parse(id).expect("an id");
        let created_at = now();
        let hold = NewHold {
            id: &id,
            buyer: &self.buyer,
            items: &self.items,
            ttl_ms: None,
            amount: self.price,
            strategy: match rule {
                WriteRule::Plain => Strategy::None,
                WriteRule::Fenced(_) => Strategy::Raft,
                WriteRule::CompareVersion => Strategy::Optimistic,
                WriteRule::Conditional => Strategy::Atomic,
            },
            created_at,
            expires_at: created_at + Duration::from_secs(60),
        };
        self.store
            .write_hold(rule, &hold, &[self.taken(stock)])
            .await
            .expect("a write")
    }

    fn taken(&self, stock: Stock) -> Taken<'_> {
        Taken {
            event_id: &self.event,
            quantity: 1,
            max_per_buyer: None,
            stock,
        }
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

    async fn once_a_newer_token_has_read_an_older_one_can_no_longer_write(db: TestDb) {
        let fixture = Fixture::new(&db, 2).await;
        let (old, new) = (WriteRule::Fenced(5), WriteRule::Fenced(6));
        let owed = HoldId::parse("owed").expect("an id");
        assert_eq!(fixture.place("owed", old).await, HoldWrite::Written);
        fixture.store.release(&owed, Strategy::Raft, now()).await.expect("a release");

        let read_by_old = fixture.read_announced(5).await;
        let read_by_new = fixture.read_announced(6).await;
        assert_eq!((read_by_old.available, read_by_new.available), (1, 1));
        // Token 5 wakes between the read and the write of token 6: neither may it take nor give back.
        let stale = HoldWrite::Stale(fixture.event.clone());
        assert_eq!(fixture.place_having_read("old", old, read_by_old).await, stale);
        let given = fixture.store.give_back(old, std::slice::from_ref(&owed), now()).await.expect("an answer");
        assert_eq!(given, GiveBack::Stale(fixture.event.clone()));
        assert_eq!(fixture.place_having_read("new", new, read_by_new).await, HoldWrite::Written);
        // And it cannot begin once more either.
        assert_eq!(fixture.try_read_announced(5).await.map(|_| ()), Err(fixture.event.clone()));

        assert_eq!(fixture.store.give_back(new, &[owed], now()).await.expect("an answer"), GiveBack::Done(1));
        let records = fixture.store.records(&fixture.event).await.expect("a look").expect("records");
        assert_eq!((records.event.available, records.event.held), (1, 1));
        assert_eq!(records.accepted_tokens, [5, 6, 6], "a read is no write");
        fixture.store.close().await;
    }

    async fn an_announced_read_moves_no_version(db: TestDb) {
        let fixture = Fixture::new(&db, 5).await;
        let before = fixture.store.read_stock(&fixture.event, &fixture.buyer).await.expect("stock");
        assert_eq!(fixture.read_announced(9).await, before);
        // Whoever compares versions is not disturbed by it.
        assert_eq!(fixture.place_having_read("h", WriteRule::CompareVersion, before).await, HoldWrite::Written);
        fixture.store.close().await;
    }

    async fn a_release_that_waited_for_its_hold_to_be_placed_releases_it(db: TestDb) {
        let fixture = Fixture::new(&db, 5).await;
        let id = HoldId::parse("h").expect("an id");
        // The PUT has written the hold and not yet committed; the DELETE runs into it.
        let mut tx = fixture.store.db.begin().await.expect("a transaction");
        let created_at = now();
        with_tx!(tx, c => {
            sqlx::query(
                "insert into hold (hold_id, status, buyer, amount_minor, currency, strategy, created_at, expires_at)
                 values ('h', 'placed', 'ann', 1, 'EUR', 'atomic', $1, $2)",
            )
            .bind(created_at)
            .bind(created_at + Duration::from_secs(60))
            .execute(c)
            .await
            .map(|_| ())
        })
        .expect("a hold");
        let releasing = tokio::spawn({
            let (store, id) = (fixture.store.clone(), id.clone());
            async move { store.release(&id, Strategy::Atomic, now()).await }
        });
        if db.url().starts_with("postgres") {
            // (On SQLite it waits for its turn, before it has looked at anything.)
            testkit::eventually(Duration::from_secs(4), "the release waits for the row", async || {
                let (waiting,): (i64,) = with_reader!(fixture.store.db, c => {
                    sqlx::query_as(
                        "select count(*) from pg_stat_activity
                          where datname = current_database() and wait_event_type = 'Lock'",
                    )
                    .fetch_one(c)
                    .await
                })
                .expect("a look");
                (waiting == 1).then_some(())
            })
            .await;
        }
        tx.commit().await.expect("a commit");
        let released = releasing.await.expect("no panic").expect("an answer");
        assert!(matches!(released, Release::Owed(_)), "{released:?}");
        fixture.store.close().await;
    }

    async fn holds_that_cannot_be_given_back_keep_no_other_strategy_from_its_own(db: TestDb) {
        let fixture = Fixture::new(&db, 5).await;
        for id in ["raft-1", "raft-2"] {
            assert_eq!(fixture.place(id, WriteRule::Fenced(1)).await, HoldWrite::Written);
        }
        assert_eq!(fixture.place("atomic-1", WriteRule::Conditional).await, HoldWrite::Written);
        // All of them are due, those of `raft` for longer, and there is room for one of each strategy.
        let later = now() + Duration::from_secs(120);
        let due = fixture.store.due(later, Duration::ZERO, 1).await.expect("a look");
        let mut due: Vec<_> = due.iter().map(|group| (group.strategy, group.holds.as_slice())).collect();
        due.sort_by_key(|(strategy, _)| strategy.name());
        let (atomic, raft) = (HoldId::parse("atomic-1").expect("an id"), HoldId::parse("raft-1").expect("an id"));
        assert_eq!(due, [(Strategy::Atomic, &[atomic][..]), (Strategy::Raft, &[raft][..])]);
        fixture.store.close().await;
    }
}
