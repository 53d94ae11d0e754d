//! The race itself, on two instances over one database.

use testkit::TestDb;
use ticketing_types::Strategy;

use crate::shop::{Shop, outcomes};

const CAPACITY: u32 = 20;
const BUYERS: usize = 150;

testkit::for_each_engine! {
    async fn strategies_that_promise_keep_their_promise_without_a_lock(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        for strategy in [Strategy::Atomic, Strategy::Optimistic] {
            for round in 0..3 {
                let event = format!("e-{strategy}-{round}");
                shop.event(&event, CAPACITY).await;
                let replies = shop.burst(&event, BUYERS, strategy).await;
                let counts = outcomes(&replies);
                assert_eq!(counts.get("201"), Some(&20), "{strategy}: {counts:?}");
                assert_eq!(counts.get("409 sold-out"), Some(&130), "{strategy}: {counts:?}");
                let stock = shop.stock(&event).await;
                stock.adds_up();
                assert_eq!(stock.sold, 20, "{strategy}: oversold or undersold");
            }
        }
        shop.close().await;
    }

    async fn a_mutex_is_right_while_there_is_one_instance(db: TestDb) {
        let shop = Shop::open(&db, 1).await;
        for round in 0..3 {
            let event = format!("e-{round}");
            shop.event(&event, CAPACITY).await;
            let replies = shop.burst(&event, BUYERS, Strategy::Process).await;
            let counts = outcomes(&replies);
            assert_eq!(counts.get("201"), Some(&20), "{counts:?}");
            let stock = shop.stock(&event).await;
            stock.adds_up();
            assert_eq!(stock.sold, 20);
        }
        shop.close().await;
    }

    async fn without_a_lock_the_race_is_real_and_its_damage_is_counted(db: TestDb) {
        let shop = Shop::open(&db, 2).await;
        let mut oversold = Vec::new();
        for strategy in [Strategy::None, Strategy::Process] {
            for round in 0..3 {
                let event = format!("e-{strategy}-{round}");
                shop.event(&event, CAPACITY).await;
                let replies = shop.burst(&event, BUYERS, strategy).await;
                let counts = outcomes(&replies);
                let holds = *counts.get("201").unwrap_or(&0) as i64;
                let stock = shop.stock(&event).await;
                // How much goes wrong is up to the machine; that every ticket is counted is not.
                assert_eq!((stock.sold, stock.held), (holds, 0), "{counts:?}");
                assert_eq!(stock.oversold, (holds - i64::from(CAPACITY)).max(0));
                oversold.push((strategy.name(), stock.oversold));
            }
        }
        eprintln!("oversold: {oversold:?}");
        shop.close().await;
    }
}
