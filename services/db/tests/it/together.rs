//! Instances that share a database.

use std::time::{Duration, Instant};

use service_db::{Db, with_tx};
use tokio::task::JoinSet;

use crate::support::{MIGRATIONS, New, add, balance, connect};

testkit::for_each_engine! {
    async fn instances_that_start_together_migrate_once(database: testkit::TestDb) {
        let mut starting = JoinSet::new();
        for _ in 0..4 {
            let url = database.url().to_owned();
            starting.spawn(async move { Db::connect(&url, MIGRATIONS).await });
        }
        while let Some(started) = starting.join_next().await {
            started.unwrap().unwrap().ping().await.unwrap();
        }
    }

    async fn two_instances_under_a_burst_lose_no_update_and_see_no_error(database: testkit::TestDb) {
        let instances = [connect(database.url()).await, connect(database.url()).await];
        let account = New::of("ann", 1);
        account.insert(&instances[0]).await.unwrap();
        let mut burst = JoinSet::new();
        for n in 0..200 {
            let (db, id) = (instances[n % 2].clone(), account.id);
            burst.spawn(async move { add(&db, id, 1).await });
        }
        while let Some(added) = burst.join_next().await {
            added.unwrap().unwrap();
        }
        assert_eq!(balance(&instances[0], account.id).await, 200);
        assert_eq!(balance(&instances[1], account.id).await, 200);
    }

    async fn an_open_transaction_of_one_does_not_keep_the_other_from_reading(database: testkit::TestDb) {
        let (one, other) = (connect(database.url()).await, connect(database.url()).await);
        let account = New::of("ann", 1);
        account.insert(&one).await.unwrap();
        let mut tx = one.begin().await.unwrap();
        with_tx!(tx, c => sqlx::query("update account set balance = 7").execute(c).await.map(|_| ())).unwrap();
        let started = Instant::now();
        assert_eq!(balance(&other, account.id).await, 0);
        assert!(started.elapsed() < Duration::from_secs(4), "readers do not wait for writers");
        tx.commit().await.unwrap();
        assert_eq!(balance(&other, account.id).await, 7);
    }
}

/// What the turns cannot help with: another *process* that holds the file. (Here: a connection that does not
/// take turns.) The wait is SQLite's own, and its end is an error that says "again".
#[tokio::test]
async fn a_file_locked_by_another_process_is_a_retryable_error() {
    use sqlx::{Connection as _, SqliteConnection};

    let database = testkit::sqlite();
    let db = connect(database.url()).await;
    let mut stranger = SqliteConnection::connect(database.url()).await.unwrap();
    sqlx::query("begin immediate")
        .execute(&mut stranger)
        .await
        .unwrap();
    let error = db.begin().await.unwrap_err();
    assert!(service_db::is_retryable(&error), "{error}");
    sqlx::query("rollback").execute(&mut stranger).await.unwrap();
    db.begin().await.unwrap().rollback().await.unwrap();
}
