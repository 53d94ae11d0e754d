//! Commit, rollback, and what happens to a transaction that is merely dropped.

use service_db::{is_outcome_unknown, is_retryable, with_tx};

use crate::support::{New, add, balance, connect, owners};

testkit::for_each_engine! {
    async fn what_is_committed_is_there_and_what_is_rolled_back_is_not(database: testkit::TestDb) {
        let db = connect(database.url()).await;
        db.ping().await.unwrap();
        New::of("ann", 1).insert(&db).await.unwrap();
        New::of("ann", 2).insert(&db).await.unwrap();
        New::of("bob", 5).insert(&db).await.unwrap();

        let mut tx = db.begin().await.unwrap();
        with_tx!(tx, c => sqlx::query("delete from account").execute(c).await.map(|_| ())).unwrap();
        // Readers go on meanwhile, and see what was committed.
        assert_eq!(owners(&db).await, [("ann".to_owned(), 3), ("bob".to_owned(), 5)]);
        tx.rollback().await.unwrap();
        assert_eq!(owners(&db).await, [("ann".to_owned(), 3), ("bob".to_owned(), 5)]);
        db.close().await;
    }

    async fn several_queries_share_one_transaction_by_reborrowing(database: testkit::TestDb) {
        let db = connect(database.url()).await;
        New::of("ann", 1).insert(&db).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let count: i64 = with_tx!(tx, c => async {
            sqlx::query("update account set number = number + 1").execute(&mut *c).await?;
            sqlx::query_scalar("select number from account").fetch_one(&mut *c).await
        }.await)
        .unwrap();
        assert_eq!(count, 2);
        tx.commit().await.unwrap();
    }

    async fn a_dropped_transaction_frees_the_way_for_the_next(database: testkit::TestDb) {
        let db = connect(database.url()).await;
        let account = New::of("ann", 1);
        account.insert(&db).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        with_tx!(tx, c => sqlx::query("update account set balance = 99").execute(c).await.map(|_| ())).unwrap();
        drop(tx);
        add(&db, account.id, 1).await.unwrap();
        assert_eq!(balance(&db, account.id).await, 1);
    }
}

/// The server ends the session while it commits. Whether it had committed by then it does not say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_connection_breaks_is_an_unknown_outcome() {
    let Some(database) = testkit::postgres().await else {
        return;
    };
    let db = connect(database.url()).await;
    testkit::break_commits(database.url(), "account").await;

    let error = New::of("ann", 1).insert(&db).await.unwrap_err();
    assert!(is_outcome_unknown(&error) && !is_retryable(&error), "{error:?}");
    // Before the commit the same loss is a certain one.
    let mut tx = db.begin().await.unwrap();
    let error = with_tx!(tx, c => {
        sqlx::query("select pg_terminate_backend(pg_backend_pid())").execute(c).await.map(|_| ())
    })
    .unwrap_err();
    assert!(is_retryable(&error) && !is_outcome_unknown(&error), "{error:?}");
}
