//! The ledger in SQL.
//!
//! Every call is one transaction: lock the reference's row, look the key up, read the reference's lines,
//! decide (pure, [`crate::domain::rules`]), append. The key and the line are one row, so there is no moment in
//! which the money has moved and the key is not known yet; a repeat that arrives meanwhile waits for the
//! reference's row and then finds the line.

mod row;

use chrono::Utc;
use service_db::{Db, Migrations, Tx, UniqueIndex, with_reader, with_tx};
use sqlx::QueryBuilder;
use sqlx::migrate::Migrator;
use ticketing_types::PaymentId;
use ticketing_types::gateway::LedgerTotals;
use uuid::Uuid;

use crate::domain::book::{Book, Line};
use crate::domain::card::Manner;
use crate::domain::rules::{self, Call, Decision, NewLine, Refusal};
use row::LineRow;

static SQLITE: Migrator = sqlx::migrate!("../../migrations/gateway/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("../../migrations/gateway/postgres");

/// The gateway's tables.
pub(crate) const MIGRATIONS: Migrations = Migrations {
    sqlite: &SQLITE,
    postgres: &POSTGRES,
};

/// Two references used one key at the same moment; the second is told so.
const ONE_LINE_PER_KEY: UniqueIndex = UniqueIndex {
    name: "entry_key",
    columns: "entry.merchant_key",
};

/// How often a transaction is tried that the database was too busy for.
const TRIES_MAX: u32 = 4;

macro_rules! select_line {
    ($tail:literal) => {
        concat!(
            "select entry_id, merchant_key, reference, kind, card, authorization_id, amount_minor, currency, at ",
            "from entry ",
            $tail
        )
    };
}

/// What a call left in the ledger.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) line: Line,
    /// The line was there before.
    pub(crate) replayed: bool,
    pub(crate) manner: Manner,
}

/// Why a call left nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The processor's book.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    db: Db,
}

impl Ledger {
    pub(crate) fn new(db: Db) -> Self {
        Self { db }
    }

    /// Makes the call, or finds that it was made before.
    pub(crate) async fn make(&self, call: &Call) -> Result<Written, LedgerError> {
        let mut tries = 1;
        loop {
            match self.try_make(call).await {
                Err(LedgerError::Database(error)) if ONE_LINE_PER_KEY.violated_by(&error) => {
                    return Err(Refusal::KeyReused.into());
                }
                // Safe also when the commit's fate is not known: the key finds the line.
                Err(LedgerError::Database(error))
                    if service_db::is_retryable(&error) && tries < TRIES_MAX =>
                {
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_make(&self, call: &Call) -> Result<Written, LedgerError> {
        let mut tx = self.db.begin().await?;
        let book = open(&mut tx, call).await?;
        let known = line_of_key(&mut tx, call.key()).await?;
        match rules::decide(call, known.as_ref(), &book) {
            Ok(Decision::Replay(line)) => {
                tx.rollback().await?;
                Ok(Written {
                    line,
                    replayed: true,
                    manner: Manner::AtOnce,
                })
            }
            Ok(Decision::Append(new)) => {
                let manner = new.manner;
                let line = append(&mut tx, call, new).await?;
                tx.commit().await?;
                Ok(Written {
                    line,
                    replayed: false,
                    manner,
                })
            }
            // The only refusal that leaves a trace: that it was the first try must be remembered.
            Err(Refusal::FailedBeforeCharging) => {
                tx.commit().await?;
                Err(Refusal::FailedBeforeCharging.into())
            }
            Err(refusal) => {
                tx.rollback().await?;
                Err(refusal.into())
            }
        }
    }

    /// Every line of a reference, oldest first.
    pub(crate) async fn lines(&self, reference: &PaymentId) -> sqlx::Result<Vec<Line>> {
        const SQL: &str = select_line!("where reference = $1 order by entry_id");
        let rows: Vec<LineRow> =
            with_reader!(self.db, c => sqlx::query_as(SQL).bind(reference.as_str()).fetch_all(c).await)?;
        rows.into_iter().map(Line::try_from).collect()
    }

    /// What each of these references adds up to; those never heard of are left out.
    pub(crate) async fn totals(&self, references: &[PaymentId]) -> sqlx::Result<Vec<LedgerTotals>> {
        if references.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<LineRow> = with_reader!(self.db, c => {
            let mut sql = QueryBuilder::new(select_line!("where reference in ("));
            let mut list = sql.separated(", ");
            for reference in references {
                list.push_bind(reference.as_str());
            }
            sql.push(") order by reference, entry_id");
            sql.build_query_as().fetch_all(c).await
        })?;
        let lines: Vec<Line> = rows
            .into_iter()
            .map(Line::try_from)
            .collect::<sqlx::Result<_>>()?;
        Ok(lines
            .chunk_by(|a, b| a.reference == b.reference)
            .map(|lines| {
                let book = Book {
                    lines: lines.to_vec(),
                    ..Book::default()
                };
                book.totals(lines[0].reference.clone())
            })
            .collect())
    }
}

/// Locks the reference until the transaction ends, counts the attempt, and reads the reference's lines.
async fn open(tx: &mut Tx, call: &Call) -> sqlx::Result<Book> {
    const LOCK: &str = "insert into reference (reference, authorize_attempts) values ($1, $2) \
        on conflict (reference) do update \
        set authorize_attempts = reference.authorize_attempts + excluded.authorize_attempts \
        returning authorize_attempts, closed";
    const LINES: &str = select_line!("where reference = $1 order by entry_id");
    let reference = call.reference().as_str();
    let attempts = i64::from(matches!(call, Call::Authorize(_)));
    let (authorize_attempts, closed): (i64, bool) = with_tx!(tx, c =>
        sqlx::query_as(LOCK).bind(reference).bind(attempts).fetch_one(c).await
    )?;
    let rows: Vec<LineRow> = with_tx!(tx, c => sqlx::query_as(LINES).bind(reference).fetch_all(c).await)?;
    let lines = rows
        .into_iter()
        .map(Line::try_from)
        .collect::<sqlx::Result<_>>()?;
    Ok(Book {
        authorize_attempts,
        closed,
        lines,
    })
}

/// The line that already carries this key, whichever reference it belongs to.
async fn line_of_key(tx: &mut Tx, key: &str) -> sqlx::Result<Option<Line>> {
    const SQL: &str = select_line!("where merchant_key = $1");
    let row: Option<LineRow> = with_tx!(tx, c => sqlx::query_as(SQL).bind(key).fetch_optional(c).await)?;
    row.map(Line::try_from).transpose()
}

async fn append(tx: &mut Tx, call: &Call, new: NewLine) -> sqlx::Result<Line> {
    const INSERT: &str = "insert into entry (entry_id, merchant_key, reference, kind, card, authorization_id, \
        amount_minor, currency, at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    const CLOSE: &str = "update reference set closed = $2 where reference = $1";
    let line = Line {
        id: Uuid::now_v7().to_string(),
        key: call.key().to_owned(),
        reference: call.reference().clone(),
        kind: new.kind,
        card: new.card,
        authorization_id: new.authorization_id,
        amount: new.amount,
        at: Utc::now(),
    };
    with_tx!(tx, c => sqlx::query(INSERT)
        .bind(&line.id)
        .bind(&line.key)
        .bind(line.reference.as_str())
        .bind(row::kind_name(line.kind))
        .bind(line.card.map(|card| card.name()))
        .bind(&line.authorization_id)
        .bind(line.amount.amount_minor())
        .bind(line.amount.currency().code())
        .bind(line.at)
        .execute(c)
        .await
        .map(|_| ())
    )?;
    if new.closes {
        with_tx!(tx, c => sqlx::query(CLOSE)
            .bind(line.reference.as_str())
            .bind(true)
            .execute(c)
            .await
            .map(|_| ())
        )?;
    }
    Ok(line)
}
