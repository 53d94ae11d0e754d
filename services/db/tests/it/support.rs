//! A table of accounts, and the queries on it, each written once.

use service_db::{Db, Migrations, UniqueIndex, with_reader, with_tx};
use sqlx::migrate::Migrator;
use uuid::Uuid;

static SQLITE: Migrator = sqlx::migrate!("tests/it/migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("tests/it/migrations/postgres");
pub(crate) const MIGRATIONS: Migrations = Migrations {
    sqlite: &SQLITE,
    postgres: &POSTGRES,
};

pub(crate) const ONE_GUARDED_NUMBER: UniqueIndex = UniqueIndex {
    name: "account_owner_number_guarded",
    columns: "account.owner, account.number",
};
pub(crate) const ONE_ID: UniqueIndex = UniqueIndex {
    name: "account_pkey",
    columns: "account.account_id",
};

pub(crate) async fn connect(url: &str) -> Db {
    Db::connect(url, MIGRATIONS).await.unwrap()
}

/// An account to be opened.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) id: Uuid,
    pub(crate) owner: &'static str,
    pub(crate) number: i64,
    pub(crate) guarded: bool,
    pub(crate) opened_at: sqlx::types::chrono::DateTime<sqlx::types::chrono::Utc>,
    pub(crate) note: Option<sqlx::types::Json<Vec<String>>>,
}

impl New {
    pub(crate) fn of(owner: &'static str, number: i64) -> Self {
        let opened_at = "2026-11-30T12:34:56.789012Z".parse().unwrap();
        Self {
            id: Uuid::new_v4(),
            owner,
            number,
            guarded: true,
            opened_at,
            note: None,
        }
    }

    pub(crate) async fn insert(&self, db: &Db) -> sqlx::Result<()> {
        const SQL: &str = "insert into account (account_id, owner, number, guarded, opened_at, note)
             values ($1, $2, $3, $4, $5, $6)";
        let mut tx = db.begin().await?;
        let inserted = with_tx!(tx, c => {
            sqlx::query(SQL)
                .bind(self.id)
                .bind(self.owner)
                .bind(self.number)
                .bind(self.guarded)
                .bind(self.opened_at)
                .bind(self.note.clone())
                .execute(c)
                .await
                .map(|done| done.rows_affected())
        });
        match inserted {
            Ok(rows) => {
                assert_eq!(rows, 1);
                tx.commit().await
            }
            Err(error) => {
                tx.rollback().await?;
                Err(error)
            }
        }
    }
}

/// Reads the balance, adds to it and writes it back, all inside one transaction.
pub(crate) async fn add(db: &Db, id: Uuid, amount: i64) -> sqlx::Result<()> {
    // Only PostgreSQL needs to be told; SQLite's transaction is alone from its first moment.
    let select = match db.engine() {
        service_db::Engine::Sqlite => "select balance from account where account_id = $1",
        service_db::Engine::Postgres => "select balance from account where account_id = $1 for update",
    };
    let mut tx = db.begin().await?;
    let (balance,) = with_tx!(tx, c => sqlx::query_as::<_, (i64,)>(select).bind(id).fetch_one(c).await)?;
    with_tx!(tx, c => {
        sqlx::query("update account set balance = $1 where account_id = $2")
            .bind(balance + amount)
            .bind(id)
            .execute(c)
            .await
            .map(|_| ())
    })?;
    tx.commit().await
}

pub(crate) async fn balance(db: &Db, id: Uuid) -> i64 {
    with_reader!(db, c => {
        sqlx::query_scalar("select balance from account where account_id = $1").bind(id).fetch_one(c).await
    })
    .unwrap()
}

pub(crate) async fn owners(db: &Db) -> Vec<(String, i64)> {
    const SQL: &str = "select owner, cast(sum(number) as bigint) from account group by owner order by owner";
    with_reader!(db, c => sqlx::query_as::<_, (String, i64)>(SQL).fetch_all(c).await).unwrap()
}
