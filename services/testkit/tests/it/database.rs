//! Fresh databases, and nothing left behind.

use sqlx::migrate::Migrator;

static NO_MIGRATIONS: Migrator = Migrator {
    ignore_missing: false,
    ..Migrator::DEFAULT
};

const MIGRATIONS: service_db::Migrations = service_db::Migrations {
    sqlite: &NO_MIGRATIONS,
    postgres: &NO_MIGRATIONS,
};

testkit::for_each_engine! {
    async fn every_test_gets_a_database_of_its_own(first: testkit::TestDb) {
        let second = first.url_for("other");
        for url in [first.url(), second.as_str()] {
            let db = service_db::Db::connect(url, MIGRATIONS).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            service_db::with_tx!(tx, c => sqlx::query("create table only_here (n bigint)").execute(c).await.map(|_| ()))
                .unwrap();
            tx.commit().await.unwrap();
            db.close().await;
        }
    }
}

#[test]
fn free_ports_are_different_and_low() {
    let ports = testkit::free_ports(20);
    let mut unique = ports.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 20);
    assert!(ports.iter().all(|port| *port < 32_768), "{ports:?}");
}
