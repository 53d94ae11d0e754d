//! The same Rust values go in and come out, and the same errors are recognised.

use service_db::{Db, is_check_violation, is_retryable, is_unique_violation, with_reader, with_tx};
use sqlx::types::{
    Json,
    chrono::{DateTime, Utc},
};
use uuid::Uuid;

use crate::support::{MIGRATIONS, New, ONE_GUARDED_NUMBER, ONE_ID, connect};

type Row = (Uuid, bool, DateTime<Utc>, Option<Json<Vec<String>>>);

testkit::for_each_engine! {
    async fn uuids_times_booleans_and_json_come_back_as_they_went(database: testkit::TestDb) {
        let db = connect(database.url()).await;
        for note in [None, Some(Json(vec!["a".to_owned()]))] {
            let new = New { note: note.clone(), ..New::of("ann", i64::from(note.is_some())) };
            new.insert(&db).await.unwrap();
            const SQL: &str = "select account_id, guarded, opened_at, note from account where account_id = $1";
            let row: Row =
                with_reader!(db, c => sqlx::query_as(SQL).bind(new.id).fetch_one(c).await).unwrap();
            assert_eq!(row, (new.id, true, new.opened_at, note));
        }
    }

    async fn a_violated_unique_index_is_known_by_name(database: testkit::TestDb) {
        let db = connect(database.url()).await;
        let first = New::of("ann", 1);
        first.insert(&db).await.unwrap();

        let same_number = New::of("ann", 1).insert(&db).await.unwrap_err();
        assert!(ONE_GUARDED_NUMBER.violated_by(&same_number), "{same_number}");
        assert!(!ONE_ID.violated_by(&same_number), "{same_number}");
        assert!(!is_retryable(&same_number), "{same_number}");

        let same_id = New { number: 2, ..first.clone() }.insert(&db).await.unwrap_err();
        assert!(ONE_ID.violated_by(&same_id) && is_unique_violation(&same_id), "{same_id}");
        assert!(!ONE_GUARDED_NUMBER.violated_by(&same_id), "{same_id}");

        // The index is partial: an unguarded row stands beside.
        New { guarded: false, ..New::of("ann", 1) }.insert(&db).await.unwrap();
    }

    async fn a_violated_check_is_known_by_name(database: testkit::TestDb) {
        let db = connect(database.url()).await;
        New::of("ann", 1).insert(&db).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let error = with_tx!(tx, c => sqlx::query("update account set balance = -1").execute(c).await.map(|_| ()))
            .unwrap_err();
        tx.rollback().await.unwrap();
        assert!(is_check_violation(&error, "account_balance_positive"), "{error}");
        assert!(!is_check_violation(&error, "account_other"), "{error}");
        assert!(!is_unique_violation(&error), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_kind_of_url_is_refused_without_its_password() {
    let error = Db::connect("mysql://me:secret@h/x", MIGRATIONS)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("sqlite:// or postgres://") && !error.contains("secret"),
        "{error}"
    );
}
